#include "client/command/show/show_page.h"

#include <algorithm>
#include <bit>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "client/command/page.h"

namespace batchwright {

// The file's bytes, embedded at build time.
extern const std::string_view kShowPage;

namespace {

namespace json = boost::json;

constexpr std::size_t kMostColumns = 1600;  // of a picture
constexpr std::size_t kWaveColumns = 1000;

std::string base64(std::string_view bytes) {
  using namespace boost::archive::iterators;
  using Text = base64_from_binary<transform_width<std::string_view::const_iterator, 6, 8>>;
  std::string text(Text(bytes.begin()), Text(bytes.end()));
  text.append((3 - bytes.size() % 3) % 3, '=');
  return text;
}

template <class Number>
void append(std::string& bytes, Number number) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// A WAV file of 16 bits: RIFF, then the chunks "fmt " and "data".
std::string wav_bytes(std::span<const float> samples, std::uint32_t rate) {
  const auto data_bytes = static_cast<std::uint32_t>(2 * samples.size());
  std::string bytes = "RIFF";
  append(bytes, data_bytes + 36);
  bytes += "WAVEfmt ";
  append(bytes, std::uint32_t{16});
  append(bytes, std::uint16_t{1});  // PCM
  append(bytes, std::uint16_t{1});  // channels
  append(bytes, rate);
  append(bytes, rate * 2);
  append(bytes, std::uint16_t{2});
  append(bytes, std::uint16_t{16});
  bytes += "data";
  append(bytes, data_bytes);
  for (const float sample : samples) {
    append(bytes, static_cast<std::int16_t>(
                      std::lrint(std::clamp(sample * 32768.0F, -32768.0F, 32767.0F))));
  }
  return bytes;
}

/// Lowest and highest sample of each column, -127 to 127.
std::string wave_bytes(std::span<const float> samples) {
  const std::size_t columns = std::min(samples.size(), kWaveColumns);
  std::string bytes;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * samples.size() / columns;
    const std::size_t end = (c + 1) * samples.size() / columns;
    const auto column = samples.subspan(begin, end - begin);
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    for (const float peak : {*low, *high}) {
      append(bytes, static_cast<std::int8_t>(std::lrint(std::clamp(peak, -1.0F, 1.0F) * 127)));
    }
  }
  return bytes;
}

json::object sound_json(const ShownSound& sound) {
  const auto most = static_cast<std::size_t>(kShownSeconds * sound.rate);
  const auto shown = std::span(sound.samples).first(std::min(most, sound.samples.size()));
  return {{"rate", sound.rate},
          {"samples", sound.samples.size()},
          {"shown", shown.size()},
          {"wave", base64(wave_bytes(shown))},
          {"wav", base64(wav_bytes(shown, sound.rate))}};
}

/// Means of `beside` frames each.
Grid narrowed(const Grid& grid, std::size_t beside) {
  if (beside <= 1) return grid;
  Grid narrow{grid.values, {}};
  for (std::size_t begin = 0; begin < grid.frames(); begin += beside) {
    const std::size_t end = std::min(begin + beside, grid.frames());
    for (std::size_t v = 0; v < grid.values; ++v) {
      double sum = 0;
      for (std::size_t t = begin; t < end; ++t) sum += grid.data[t * grid.values + v];
      narrow.data.push_back(static_cast<float>(sum / static_cast<double>(end - begin)));
    }
  }
  return narrow;
}

json::object grid_json(const Grid& grid) {
  const std::size_t beside = (grid.frames() + kMostColumns - 1) / kMostColumns;
  const Grid shown = narrowed(grid, beside);
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  for (const float value : shown.data) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float range = high > low ? high - low : 1;
  std::string bytes;
  for (const float value : shown.data) {
    // 0 is for what is no number.
    const float level = std::isfinite(value) ? 1 + 254 * (value - low) / range : 0;
    append(bytes, static_cast<std::uint8_t>(std::lrint(level)));
  }
  const bool any = high >= low;
  return {{"frames", grid.frames()}, {"values", grid.values},     {"columns", shown.frames()},
          {"low", any ? low : 0.0F}, {"high", any ? high : 0.0F}, {"beside", beside},
          {"levels", base64(bytes)}};
}

json::array facts_json(const Facts& facts) {
  json::array all;
  for (const auto& [name, text] : facts) all.push_back(json::array{name, text});
  return all;
}

json::array masks_json(const std::vector<Mask>& masks) {
  json::array all;
  for (const Mask& mask : masks) all.push_back(json::array{mask.start, mask.width});
  return all;
}

/// Runs of equal labels: value and how many.
json::object labels_json(const ShownLabels& labels) {
  json::array runs;
  for (std::size_t at = 0; at < labels.values.size();) {
    std::size_t end = at + 1;
    while (end < labels.values.size() && labels.values[end] == labels.values[at]) ++end;
    runs.push_back(json::array{labels.values[at], end - at});
    at = end;
  }
  return {{"field", labels.field},
          {"runs", std::move(runs)},
          {"categories", json::array(labels.categories.begin(), labels.categories.end())}};
}

}  // namespace

json::object row_json(const ShownRow& row) {
  json::object all{{"ordinal", row.ordinal.value}, {"key", row.key}};
  if (!row.wrong.empty()) {
    all["wrong"] = row.wrong;
    return all;
  }
  json::object drawn;
  for (const auto& [name, text] : row.drawn) drawn[name] = text;
  all["drawn"] = std::move(drawn);
  if (row.stored.rate != 0) {
    all["stored_seconds"] = row.stored.seconds();
    all["seconds"] = row.heard.seconds();
  }
  all["frames"] = row.row.values != 0 ? row.row.frames() : row.heard.samples.size();
  return all;
}

json::object page_row_json(const ShownRow& row) {
  json::object all = row_json(row);
  if (!row.wrong.empty()) return all;
  all["drawn"] = facts_json(row.drawn);  // in their order
  all["values"] = facts_json(row.values);
  if (row.stored.rate != 0) {
    all["stored"] = sound_json(row.stored);
    all["heard"] = sound_json(row.heard);
  }
  if (row.features.values != 0) all["features"] = grid_json(row.features);
  if (row.row.values != 0) all["row"] = grid_json(row.row);
  if (row.masks.applies) {
    all["masks"] =
        json::object{{"time", masks_json(row.masks.time)}, {"bands", masks_json(row.masks.bands)}};
  }
  json::array labels;
  for (const ShownLabels& each : row.labels) labels.push_back(labels_json(each));
  all["labels"] = std::move(labels);
  return all;
}

Result<void> write_show_page(const std::filesystem::path& file, const std::string& feed,
                             std::uint64_t epoch, json::array rows) {
  return write_page(file, kShowPage,
                    json::object{{"feed", feed}, {"epoch", epoch}, {"rows", std::move(rows)}});
}

}  // namespace batchwright
