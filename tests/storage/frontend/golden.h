#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "storage/ingest/files/npy.h"

// The golden values of the front end: tests/data/frontend/README.md.

namespace batchwright::test {

inline const std::string kGoldenFolder = BATCHWRIGHT_TEST_DATA "/frontend/";

using Lines = std::vector<std::vector<std::string>>;

/// The lines of a table of columns between tabs, without the first.
inline Lines lines_of(const std::string& name) {
  std::ifstream file(kGoldenFolder + name);
  Lines lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    lines.emplace_back();
    for (std::string cell; std::getline(cells, cell, '\t');) lines.back().push_back(cell);
  }
  REQUIRE(lines.size() > 1);
  lines.erase(lines.begin());
  return lines;
}

template <class T>
std::vector<T> array_of(const std::string& name) {
  const auto array = read_npy(kGoldenFolder + name);
  REQUIRE_MESSAGE(array, array.error().message);
  std::vector<T> values(array->bytes.size() / sizeof(T));
  std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  return values;
}

/// An object of a file.
inline boost::json::object golden_json(const std::string& name) {
  std::ifstream file(kGoldenFolder + name);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return boost::json::parse(text).as_object();
}

/// A clip, or its samples from a place on: "hello-16k[3000:]".
inline std::vector<float> sound_of(const std::string& clip) {
  const std::size_t from = clip.find('[');
  std::vector<float> samples;
  for (const std::int16_t sample :
       array_of<std::int16_t>("audio-" + clip.substr(0, from) + ".npy")) {
    samples.push_back(static_cast<float>(sample) / 32768);
  }
  if (from == clip.npos) return samples;
  const auto skipped = static_cast<std::ptrdiff_t>(std::stoul(clip.substr(from + 1)));
  return {samples.begin() + skipped, samples.end()};
}

inline std::uint32_t rate_of(const std::string& clip) {
  if (clip.find("22k") != clip.npos) return 22050;
  return clip.find("8k") != clip.npos ? 8000 : 16000;
}

/// |a - b| / max(1, |b|)
inline double apart(double a, double b) { return std::abs(a - b) / std::max(1.0, std::abs(b)); }

inline double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, apart(static_cast<double>(a[i]), static_cast<double>(b[i])));
  }
  return most;
}

}  // namespace batchwright::test
