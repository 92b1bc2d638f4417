#include "storage/features/frontend/options.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "storage/features/frontend/front_end.h"

using namespace batchwright;

namespace {

/// Settings that name what a front end is of, and not an option of its.
const std::set<std::string> kNoOptions = {"features", "sample_rate_hz", "like"};

}  // namespace

TEST_CASE("front end: every setting that it tells can be set by its name, from htk's") {
  for (const std::string_view like : front_end_names()) {
    for (const FeatureKind features : {FeatureKind::logmel, FeatureKind::mfcc}) {
      CAPTURE(like);
      const auto wanted = FrontEnd::create(*front_end_like(like, features), 22'050);
      REQUIRE(wanted);
      FrontEndOptions options;
      options.features = front_end_like(like, features)->features;
      options.like = like;
      for (const auto& [name, text] : wanted->settings()) {
        if (kNoOptions.count(name) != 0) continue;
        const auto set = set_option(options, name, text);
        REQUIRE_MESSAGE(set, set.error().message);
      }
      const auto found = FrontEnd::create(options, 22'050);
      REQUIRE(found);
      // An upper end below half the rate is told as the frequency that it is.
      CHECK(found->settings() == wanted->settings());
    }
  }
}

TEST_CASE("front end: every name of an option is taken, and none twice") {
  std::set<std::string_view> seen;
  for (const std::string_view name : option_names()) {
    CHECK(seen.insert(name).second);
    FrontEndOptions options;
    const auto set = set_option(options, name, "neither a number nor a word");
    REQUIRE_FALSE(set);
    CHECK(set.error().message.find(name) == 0);
    CHECK(set.error().message.find("; allowed: ") != std::string::npos);
  }
  CHECK(seen.size() > 30);
}

TEST_CASE("front end: an option of another name is refused with those there are") {
  FrontEndOptions options;
  const auto set = set_option(options, "mel_bins", "80");
  REQUIRE_FALSE(set);
  CHECK(set.error().message.find("no option \"mel_bins\" of a front end; allowed: ") == 0);
  CHECK(set.error().message.find("mel_bands") != std::string::npos);
}

TEST_CASE("front end: options from text") {
  FrontEndOptions options = *front_end_like("torchaudio", FeatureKind::logmel);
  CHECK(set_option(options, "fmax_hz", "-400"));
  CHECK(options.fmax_hz == -400);
  CHECK(set_option(options, "log", "ten"));
  CHECK(options.log == LogKind::ten);
  CHECK(set_option(options, "window_ms", "25"));
  CHECK(options.window_ms == 25);
  CHECK(options.window_samples == 0);  // milliseconds take its place
  CHECK(options.hop_samples == 200);
  const auto bad = [&options](const char* name, const char* text) {
    return set_option(options, name, text).error().message;
  };
  CHECK(bad("mel_bands", "-1") == "mel_bands = \"-1\"; allowed: a whole number, 0 or more");
  CHECK(bad("mel_bands", "80.5") == "mel_bands = \"80.5\"; allowed: a whole number, 0 or more");
  CHECK(bad("mel_bands", "4294967296") ==
        "mel_bands = \"4294967296\"; allowed: a whole number, 0 or more");
  CHECK(bad("fmin_hz", "") == "fmin_hz = \"\"; allowed: a number");
  CHECK(bad("remove_dc", "yes") == "remove_dc = \"yes\"; allowed: true, false");
  CHECK(bad("window", "blackman") ==
        "window = \"blackman\"; allowed: hamming, hann, povey, rectangular");
}

TEST_CASE("front end: a lifter so small that cepstra would be no numbers is refused") {
  FrontEndOptions options = *front_end_like("htk", FeatureKind::mfcc);
  const auto refusal = [&options](double lifter) {
    options.lifter = lifter;
    const auto made = FrontEnd::create(options, 16'000);
    return made ? std::string() : made.error().message;
  };
  CHECK(refusal(1e-320) == "lifter 1e-320; allowed: 0, or 0.001 and up");
  CHECK(refusal(0) == "");
  CHECK(refusal(0.001) == "");
}

TEST_CASE("front end: Kaldi's snip_edges is where frames begin and how many there are") {
  FrontEndOptions options = *front_end_like("kaldi", FeatureKind::logmel);
  CHECK(set_option(options, "snip_edges", "false"));
  CHECK(options.start == FrameStart::window_centre);
  CHECK(options.count == CountRule::rounded);
  CHECK(set_option(options, "snip_edges", "true"));
  CHECK(options.start == FrameStart::left);
  CHECK(options.count == CountRule::inside);
}
