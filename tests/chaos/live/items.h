#pragma once

// What the programs of a live trial have in common: an item's bytes follow from its key, and what a
// process knows is in a record of lines, each written with one write().

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"

namespace chaos {

constexpr std::int64_t kPatienceMs = 600'000;  ///< Our parent gives up before.
constexpr std::uint64_t kFrameWords = 64;      ///< Of the feed's only field.
constexpr const char* kFeed = "rollouts";

/// The library's reason why a call failed.
class Failed : public std::runtime_error {
 public:
  explicit Failed(bw_status status) : std::runtime_error(bw_error_message()), status_(status) {}
  bw_status status() const { return status_; }

 private:
  bw_status status_;
};

inline void require(bw_status status) {
  if (status != BW_OK) throw Failed(status);
}

/// name=value ..., as the program was called.
class Words {
 public:
  Words(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string word = words[i];
      const auto equals = word.find('=');
      given_[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
  }
  std::string text(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? "" : found->second;
  }
  std::uint64_t number(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? 0 : std::stoull(found->second);
  }

 private:
  std::map<std::string, std::string> given_;
};

/// The words of an item: `at` counts them.
inline std::uint32_t first_word(std::string_view key) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : key) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}
inline std::uint32_t word_at(std::uint32_t first, std::uint64_t at) {
  return first + static_cast<std::uint32_t>(at) * 2654435761U;
}

/// A last line without its end was cut off by a kill.
class Lines {
 public:
  /// Calls `read` with each whole line that is there.
  Lines(const std::string& path, const std::function<void(const std::string&)>& read) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    off_t whole = 0;
    while (std::getline(file, line) && !file.eof()) {
      whole += static_cast<off_t>(line.size()) + 1;
      read(line);
    }
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (file_ < 0 || ftruncate(file_, whole) != 0) throw std::runtime_error(path + ": open");
  }
  ~Lines() { close(file_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// Threads: any.
  void append(const std::string& line) const {
    const std::string whole = line + '\n';
    if (write(file_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
      throw std::runtime_error("the record cannot be written");
    }
  }

 private:
  int file_ = -1;
};

inline bw_connection* connect(const Words& words, const char* program) {
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.program = program;
  options.timeout_ms = kPatienceMs;
  options.reconnect_ms = kPatienceMs;
  options.inline_batches = words.number("inline") != 0 ? 1 : 0;
  bw_connection* connection = nullptr;
  require(bw_connect(words.text("endpoint").c_str(), &options, &connection));
  return connection;
}

}  // namespace chaos
