// Each key of a recipe at its default, each option of each convention, and the words of both.

#include <fmt/core.h>

#include <cctype>
#include <set>

#include "daemon/config/keys.h"
#include "storage/features/frontend/frontend.h"
#include "tests/fuzz/seeds/seeds.h"

namespace batchwright::fuzz {
namespace {

constexpr const char* kFeed = "[[feed]]\nname = \"f\"\ndataset = \"/d\"\n";
constexpr std::uint32_t kFrontEndRate = 16'000;  // Hz

/// libFuzzer's form: "..." a line, other than letters and digits as \xAB.
void write_words(const std::filesystem::path& path, const std::set<std::string>& words) {
  std::ofstream file(path);
  for (const std::string& word : words) {
    file << '"';
    for (const char letter : word) {
      if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
        file << letter;
      } else {
        file << fmt::format("\\x{:02X}", static_cast<unsigned>(letter));
      }
    }
    file << "\"\n";
  }
  require(file.good(), "a dictionary can be written");
}

/// The lines of a table in which each key has its default.
std::string defaults(std::string_view table) {
  std::string lines;
  for (const ConfigKey& key : config_keys()) {
    if (key.table != table || key.by_default.empty()) continue;
    lines += std::string(key.row.name) + " = " + key.by_default + "\n";
  }
  return lines;
}

void write_configurations(const std::filesystem::path& folder) {
  Seeds seeds(folder, "configuration");
  const std::string features = "[feed.features]\nlike = \"kaldi\"\n";
  const std::string style = "[[feed.style]]\n";
  seeds.add(kFeed + ("[feed.features]\n" + defaults("feed.features")));
  seeds.add(kFeed + style + defaults("feed.style"));
  seeds.add(kFeed + features + "options = { mel_bands = 40, window = \"hann\", hop_ms = 12.5 }\n");
  seeds.add(kFeed + features +
            "speeds = [0.9, 1, 1.1]\ncmvn = \"sliding\"\nspec_augment = true\n"
            "splice = [5, 5]\nkeep_one_of = 3\nkeep_offset = \"random\"\nlabel_delay = 5\n");
  seeds.add(kFeed + features + style + "each_noise = [\"/n\", [\"/m\", \"/o\"]]\n" +
            "each_snr_db = [[0, 10], [10, 20]]\neach_rooms = [\"/r\"]\n" + style +
            "gain_db = [-6, 6]\ntelephone_probability = 0.5\ntelephone_law = \"a\"\nweight = 2\n");
  const std::string live = "[[feed]]\nname = \"l\"\npool = \"1MiB\"\nallow_nan = true\n";
  const std::string fields = "[feed.fields]\nz = { dtype = \"int32\" }\n";
  const std::string table = "[feed.live]\nmax_length = 100\n";
  seeds.add(live + fields + table + defaults("feed.live"));
  seeds.add(live + fields + "a = { dtype = \"float32\", kind = \"aligned\", shape = [2, 3] }\n" +
            table + "step = { groups = 4 }\ngroups = \"batch\"\nmax_staleness = 4\n" +
            "stale = \"zero\"\nlinger = \"2s\"\nselect = \"uniform\"\nfresh_share = 0.5\n" +
            "[feed.plan]\nworld = 2\ncut = \"quadratic\"\nquadratic_scale = 9\n");
  seeds.add(live + "fields.z.dtype = \"uint8\"\nlive = { step = { frames = 64 } }\n");
  std::set<std::string> words = {"[feed.features]\n", style,     "[feed.live]\n", "[feed.fields]\n",
                                 "pool = ",           "kind = ", "dtype = ",      "shape = "};
  for (const ConfigKey& key : config_keys()) {
    if (key.table == "feed.features" || key.table == "feed.style" || key.table == "feed.live") {
      words.insert(std::string(key.row.name) + " = ");
    }
  }
  for (const std::string_view name : front_end_names()) words.insert(std::string(name));
  for (const std::string_view name : option_names()) words.insert(std::string(name));
  write_words(folder / "configuration.dict", words);
}

/// An input of front_ends.cpp: 1,000 samples at 16 kHz.
std::string front_end(std::size_t like, FeatureKind kind, const std::string& lines) {
  return number_bytes(static_cast<std::uint8_t>(like)) +
         number_bytes(static_cast<std::uint8_t>(kind)) + number_bytes(kFrontEndRate) +
         number_bytes(std::uint16_t{1000}) + lines;
}

void write_front_ends(const std::filesystem::path& folder) {
  Seeds seeds(folder, "front_ends");
  std::set<std::string> words;
  for (const std::string_view name : option_names()) words.insert(std::string(name) + "=");
  const auto names = front_end_names();
  for (std::size_t like = 0; like < names.size(); ++like) {
    for (const FeatureKind kind : {FeatureKind::logmel, FeatureKind::mfcc, FeatureKind::plp}) {
      seeds.add(front_end(like, kind, ""));
      const auto options = front_end_like(names[like], kind);
      if (kind == FeatureKind::plp && !options) continue;
      require(options.has_value(), "a convention has options");
      const auto made = FrontEnd::create(*options, kFrontEndRate);
      require(made.has_value(), "and is one of front ends");
      std::string lines;
      for (const auto& [name, text] : made->settings()) {
        lines += name + "=" + text + "\n";
        words.insert(name + "=" + text + "\n");
      }
      seeds.add(front_end(0, kind, lines));
    }
  }
  write_words(folder / "front_ends.dict", words);
}

}  // namespace

void write_setting_seeds(const std::filesystem::path& folder) {
  write_configurations(folder);
  write_front_ends(folder);
}

}  // namespace batchwright::fuzz
