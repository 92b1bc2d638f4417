#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace batchwright::fuzz {

/// Inputs to begin with of one target, FOLDER/TARGET/seed-0 and so on.
class Seeds {
 public:
  Seeds(const std::filesystem::path& folder, const char* target) : folder_(folder / target) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& bytes) {
    std::ofstream file(folder_ / ("seed-" + std::to_string(count_++)), std::ios::binary);
    file << bytes;
    require(file.good(), "a seed can be written");
  }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

inline std::string as_text(const void* bytes, std::size_t size) {
  return {static_cast<const char*>(bytes), size};
}

template <class Number>
std::string number_bytes(Number value) {
  return as_text(&value, sizeof value);
}

/// Encoded sound, sets of noise and rooms.
void write_sound_seeds(const std::filesystem::path& folder);

/// Configurations with each key of a recipe and options of each convention; and, as
/// FOLDER/TARGET.dict, the words of both.
void write_setting_seeds(const std::filesystem::path& folder);

}  // namespace batchwright::fuzz
