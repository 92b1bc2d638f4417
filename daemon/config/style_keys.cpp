// The rows of [[feed.style]].

#include <array>
#include <utility>

#include "daemon/config/features_keys.h"

namespace batchwright {

namespace {

using Paths = std::vector<std::filesystem::path>;

Fault read_paths(const ConfigNode& node, Paths& out) {
  std::vector<std::string> texts;
  if (const Fault fault = read_list(node, texts)) return fault;
  out.assign(texts.begin(), texts.end());
  return nullptr;
}

Fault read_path_lists(const ConfigNode& node, std::vector<Paths>& out) {
  if (node.list() == nullptr) return &node;
  std::vector<Paths> lists;
  for (const ConfigNode& entry : *node.list()) {
    if (const Fault fault = read_paths(entry, lists.emplace_back())) return fault;
  }
  out = std::move(lists);
  return nullptr;
}

/// Two numbers, the lower first.
Fault read_range(const ConfigNode& node, double& low, double& high) {
  if (node.list() == nullptr || node.list()->size() != 2) return &node;
  double first = 0;
  double second = 0;
  if (const Fault fault = read_real((*node.list())[0], first)) return fault;
  if (const Fault fault = read_real((*node.list())[1], second)) return fault;
  if (first > second) return &node;
  low = first;
  high = second;
  return nullptr;
}

Fault read_snr(const ConfigNode& node, NoiseOptions& out) {
  return read_range(node, out.snr_low_db, out.snr_high_db);
}

Fault read_gain(const ConfigNode& node, GainOptions& out) {
  return read_range(node, out.low_db, out.high_db);
}

Fault read_ranges(const ConfigNode& node, std::vector<std::pair<double, double>>& out) {
  if (node.list() == nullptr) return &node;
  std::vector<std::pair<double, double>> ranges;
  for (const ConfigNode& entry : *node.list()) {
    auto& range = ranges.emplace_back();
    if (const Fault fault = read_range(entry, range.first, range.second)) return fault;
  }
  out = std::move(ranges);
  return nullptr;
}

Fault read_weight(const ConfigNode& node, double& out) {
  double weight = 0;
  if (const Fault fault = read_real(node, weight)) return fault;
  if (weight < 0) return &node;
  out = weight;
  return nullptr;
}

Fault read_laws(const ConfigNode& node, TelephoneLaws& out) {
  return read_word(
      node, out, {{"any", TelephoneLaws::any}, {"mu", TelephoneLaws::mu}, {"a", TelephoneLaws::a}});
}

const std::array kStyleKeys{
    key<StyleTable, read_weight>(
        {"weight", "0 and up", "1.0", Applies::anew, "Share of the sequences, to scale"},
        [](auto& s) -> auto& { return s.style.weight; }),
    key<StyleTable, read_paths>(
        {"noise", "a list of datasets with sound; [] for none", "[]", Applies::anew,
         "Noise that is added"},
        [](auto& s) -> auto& { return s.style.noise; }),
    key<StyleTable, read_probability>(
        {"noise_probability", "0 to 1", "1.0", Applies::anew,
         "Share of the sequences that get noise"},
        [](auto& s) -> auto& { return s.style.noise_draw.probability; }),
    key<StyleTable, read_snr>(
        {"snr_db", "two numbers from -200 to 200, the lower first", "[5.0, 20.0]", Applies::anew,
         "Range of the ratio of signal to noise"},
        [](auto& s) -> auto& { return s.style.noise_draw; }),
    key<StyleTable, read_paths>(
        {"rooms", "a list of datasets with impulse responses; [] for none", "[]", Applies::anew,
         "Rooms that sound is put into"},
        [](auto& s) -> auto& { return s.style.rooms; }),
    key<StyleTable, read_probability>(
        {"room_probability", "0 to 1", "1.0", Applies::anew,
         "Share of the sequences that lie in a room"},
        [](auto& s) -> auto& { return s.style.reverberation.probability; }),
    key<StyleTable, read_bool>(
        {"room_normalise", "true or false", "true", Applies::anew,
         "Whether sound stays as loud as it was"},
        [](auto& s) -> auto& { return s.style.reverberation.normalise; }),
    key<StyleTable, read_gain>(
        {"gain_db", "two numbers from -200 to 200, the lower first", "[0.0, 0.0]", Applies::anew,
         "Range of the gain"},
        [](auto& s) -> auto& { return s.style.gain; }),
    key<StyleTable, read_probability>(
        {"telephone_probability", "0 to 1", "0.0", Applies::anew,
         "Share of the sequences that come by telephone"},
        [](auto& s) -> auto& { return s.style.telephone.probability; }),
    key<StyleTable, read_laws>(
        {"telephone_law", "any mu a", R"("any")", Applies::anew, "Law of G.711"},
        [](auto& s) -> auto& { return s.style.telephone.law; }),
    key<StyleTable, read_path_lists>(
        {"each_noise", "a list of datasets, or of lists of them; [] for none", "[]", Applies::anew,
         "In place of noise: one style each, which share the weight"},
        [](auto& s) -> auto& { return s.each_noise; }),
    key<StyleTable, read_ranges>(
        {"each_snr_db", "a list of ranges, such as [[0, 10], [10, 20]]", "[]", Applies::anew,
         "In place of snr_db: one style each"},
        [](auto& s) -> auto& { return s.each_snr; }),
    key<StyleTable, read_path_lists>(
        {"each_rooms", "a list of datasets, or of lists of them; [] for none", "[]", Applies::anew,
         "In place of rooms: one style each"},
        [](auto& s) -> auto& { return s.each_rooms; }),
};

}  // namespace

std::uint64_t style_count(const StyleTable& table) {
  std::uint64_t count = 1;
  for (const std::size_t choices :
       {table.each_noise.size(), table.each_snr.size(), table.each_rooms.size()}) {
    if (choices > 0) count *= choices;
  }
  return count;
}

std::vector<StyleSettings> styles_of(const StyleTable& table) {
  std::vector<StyleSettings> styles{table.style};
  /// Each style so far with each of the choices.
  const auto multiply = [&styles](const auto& choices, auto set) {
    if (choices.empty()) return;
    std::vector<StyleSettings> product;
    for (const StyleSettings& style : styles) {
      for (const auto& choice : choices) set(product.emplace_back(style), choice);
    }
    styles = std::move(product);
  };
  multiply(table.each_noise, [](StyleSettings& style, const Paths& noise) { style.noise = noise; });
  multiply(table.each_snr, [](StyleSettings& style, const std::pair<double, double>& snr) {
    style.noise_draw.snr_low_db = snr.first;
    style.noise_draw.snr_high_db = snr.second;
  });
  multiply(table.each_rooms, [](StyleSettings& style, const Paths& rooms) { style.rooms = rooms; });
  for (StyleSettings& style : styles) style.weight /= static_cast<double>(styles.size());
  return styles;
}

std::span<const Key<StyleTable>> style_keys() { return kStyleKeys; }

}  // namespace batchwright
