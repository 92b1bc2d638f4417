#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/keys.h"
#include "daemon/config/node.h"
#include "daemon/config/read.h"

namespace batchwright {

/// What is wrong with one text, gathered so that a person who mends it sees all of it at once.
class Complaints {
 public:
  /// `name` stands for the text.
  explicit Complaints(std::string_view name) : name_(name) {}

  /// The one form of a complaint (parse.h), with its place in front, as compilers write it.
  void add(const ConfigNode& at, std::string_view path, std::string_view what,
           std::string_view allowed);
  /// A complaint of what several keys say together, in the words of the room that checks them.
  void add(const ConfigNode& at, std::string_view path, std::string_view message);
  /// The complaint of a key that is none of those known.
  void add_unknown(const ConfigNode& node, std::string_view path,
                   const std::vector<std::string_view>& known);

  /// Reads a table into `target`. `below`: names of keys that are read elsewhere.
  template <class Target>
  void read_keys(const ConfigNode& table, std::string_view path, Target& target,
                 std::span<const Key<Target>> keys,
                 const std::vector<std::string_view>& below = {});

  /// Reads one value of it.
  template <class Target>
  void read_key(const ConfigNode& node, std::string_view path, const Key<Target>& key,
                Target& target) {
    if (const Fault fault = key.read(node, target)) {
      add(*fault, path, fmt::format("found {}", describe_found(*fault)), key.row.allowed);
    }
  }

  std::size_t count() const { return complaints_.size(); }
  /// "NAME:LINE:COLUMN" of a value.
  std::string place_of(const ConfigNode& node) const {
    return place(name_, node.line, node.column);
  }
  /// One a line, in the order of the text.
  std::string text();

 private:
  struct Complaint {
    std::uint32_t line;
    std::uint32_t column;
    std::string text;
  };

  std::string name_;
  std::vector<Complaint> complaints_;
};

template <class Target>
void Complaints::read_keys(const ConfigNode& table, std::string_view path, Target& target,
                           std::span<const Key<Target>> keys,
                           const std::vector<std::string_view>& below) {
  if (table.table() == nullptr) {
    return add(table, path, fmt::format("found {}", describe_found(table)), "a table");
  }
  for (const ConfigNode& node : table.table()->entries) {
    // Not unknown: the caller passes them on.
    if (std::find(below.begin(), below.end(), node.key) != below.end()) continue;
    const std::string full = fmt::format("{}.{}", path, node.key);
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const auto& k) { return k.row.name == node.key; });
    if (key != keys.end()) {
      read_key(node, full, *key, target);
    } else {
      std::vector<std::string_view> known;
      for (const auto& k : keys) known.push_back(k.row.name);
      // So that "plann" gets its hint, too.
      known.insert(known.end(), below.begin(), below.end());
      add_unknown(node, full, known);
    }
  }
}

}  // namespace batchwright
