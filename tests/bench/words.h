#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace batchwright::bench {

/// A benchmark's arguments, of the form name=value.
class Words {
 public:
  Words(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) fail(std::string(word) + ": not name=value");
      values_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) fail(name + " is missing");
    return found->second;
  }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoull(found->second);
  }
  bool has(const std::string& name) const { return values_.contains(name); }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(2);
  }
  std::map<std::string, std::string> values_;
};

}  // namespace batchwright::bench
