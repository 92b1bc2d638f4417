#include <functional>
#include <map>
#include <numeric>

#include "storage/features/frontend/frames/aligned.h"
#include "storage/features/frontend/frames/cmvn.h"
#include "storage/features/frontend/frames/deltas.h"
#include "storage/features/frontend/frames/stacking.h"
#include "tests/storage/frontend/golden.h"

// What is done with frames after the features, against postprocess.json.

using namespace batchwright;
using namespace batchwright::test;
namespace json = boost::json;

namespace {

/// Numbers of nested arrays, one after the other.
std::vector<float> flat(const json::value& value) {
  if (!value.is_array()) return {static_cast<float>(value.to_number<double>())};
  std::vector<float> numbers;
  for (const json::value& each : value.as_array()) {
    const auto inner = flat(each);
    numbers.insert(numbers.end(), inner.begin(), inner.end());
  }
  return numbers;
}

std::vector<std::int32_t> labels_of(const json::value& value) {
  std::vector<std::int32_t> labels;
  for (const json::value& each : value.as_array()) labels.push_back(each.to_number<std::int32_t>());
  return labels;
}

std::vector<std::int32_t> aligned(const AlignedSteps& steps,
                                  const std::vector<std::int32_t>& labels) {
  const auto rows = AlignedRows::create(steps, labels.size(), kDefaultLabelSlack);
  REQUIRE_MESSAGE(rows, rows.error().message);
  std::vector<std::int32_t> out(rows->size());
  const std::int32_t ignored = -100;
  rows->copy(std::as_bytes(std::span(labels)), sizeof(std::int32_t),
             std::as_bytes(std::span(&ignored, 1)), std::as_writable_bytes(std::span(out)));
  return out;
}

/// The first of two values of each frame.
std::vector<float> first_values(const std::vector<float>& frames) {
  std::vector<float> firsts;
  for (std::size_t i = 0; i < frames.size(); i += 2) firsts.push_back(frames[i]);
  return firsts;
}

const std::map<std::string, StackAlign> kAligns = {
    {"right", StackAlign::right}, {"centre", StackAlign::centre}, {"left", StackAlign::left}};
const std::map<std::string, StackEnd> kEnds = {
    {"repeat", StackEnd::repeat}, {"zeros", StackEnd::zeros}, {"drop", StackEnd::drop}};

}  // namespace

TEST_CASE("frames: splice") {
  const json::object golden = golden_json("postprocess.json");
  const auto input = flat(golden.at("input"));
  std::vector<float> out(11 * 8);
  splice_frames({1, 2}, 2, input, out);
  CHECK(out == flat(golden.at("splice").at("1,2")));
}

TEST_CASE("frames: stacks, and the labels that go with them") {
  const json::object golden = golden_json("postprocess.json");
  const auto input = flat(golden.at("input"));
  for (const json::value& line : golden.at("stack").as_array()) {
    Stacking stacking;
    stacking.stack = line.at("stack").to_number<std::uint32_t>();
    stacking.stride = line.at("stride").to_number<std::uint32_t>();
    stacking.align = kAligns.at(std::string(line.at("align").as_string()));
    stacking.end = kEnds.at(std::string(line.at("end").as_string()));
    REQUIRE(check(stacking));
    CHECK(stacked_length(11, stacking) == line.at("frames").to_number<std::uint64_t>());
    std::vector<float> out(stacked_length(11, stacking) * 2 * stacking.stack);
    stack_frames(stacking, 2, input, out);
    CHECK(out == flat(line.at("values")));
    CHECK(aligned({11, 11, stacking, {}}, labels_of(golden.at("labels"))) ==
          labels_of(line.at("labels")));
  }
  // No length that a formula says is another than that of what is made.
  for (std::uint64_t frames = 0; frames < 40; ++frames) {
    for (const auto& [name, end] : kEnds) {
      Stacking stacking{4, 3, StackAlign::centre, end, 0};
      std::uint64_t starts = 0;
      for (std::uint64_t t = 0; t * 3 < frames; ++t) {
        if (end != StackEnd::drop || t * 3 + 4 - 1 - 1 < frames) ++starts;
      }
      CHECK(stacked_length(frames, stacking) == starts);
    }
  }
}

TEST_CASE("frames: one of several is kept") {
  const json::object golden = golden_json("postprocess.json");
  const auto input = flat(golden.at("input"));
  for (const json::value& line : golden.at("subsample").as_array()) {
    const KeepOne keep{line.at("keep_one_of").to_number<std::uint32_t>(),
                       line.at("offset").to_number<std::uint32_t>()};
    std::vector<float> out(kept_length(11, keep) * 2);
    keep_frames(keep, 2, input, out);
    CHECK(first_values(out) == flat(line.at("frames")));
    CHECK(aligned({11, 11, keep, {}}, labels_of(golden.at("labels"))) ==
          labels_of(line.at("labels")));
  }
}

TEST_CASE("frames: targets that come later") {
  const json::object golden = golden_json("postprocess.json");
  for (const json::value& line : golden.at("delay").as_array()) {
    const LabelDelay delay{line.at("delay").to_number<std::uint32_t>(),
                           line.at("extend").as_bool()};
    auto frames = flat(golden.at("input"));
    frames.resize(2 * delayed_length(11, delay));
    extend_frames(11, 2, frames);
    CHECK(first_values(frames) == flat(line.at("frames")));
    const auto labels = aligned({11, 11, KeepOne{}, delay}, labels_of(golden.at("labels")));
    CHECK(labels == labels_of(line.at("labels")));
    CHECK(real_targets(11, delay) ==
          static_cast<std::uint64_t>(std::count_if(labels.begin(), labels.end(),
                                                   [](std::int32_t y) { return y != -100; })));
  }
}

TEST_CASE("frames: labels of perturbed speech, short ones and long ones") {
  const std::vector<std::int32_t> labels = {10, 11, 12, 13};
  CHECK(aligned({4, 8, KeepOne{}, {}}, labels) ==
        std::vector<std::int32_t>{10, 10, 11, 11, 12, 12, 13, 13});
  CHECK(aligned({4, 2, KeepOne{}, {}}, labels) == std::vector<std::int32_t>{11, 13});
  CHECK(aligned({6, 6, KeepOne{}, {}}, labels) ==
        std::vector<std::int32_t>{10, 11, 12, 13, 13, 13});
  CHECK(aligned({2, 2, KeepOne{}, {}}, labels) == std::vector<std::int32_t>{10, 11});
  CHECK_FALSE(AlignedRows::create({7, 7, KeepOne{}, {}}, 4, kDefaultLabelSlack));
  CHECK_FALSE(AlignedRows::create({1, 1, KeepOne{}, {}}, 4, kDefaultLabelSlack));
  CHECK_FALSE(AlignedRows::create({1, 1, KeepOne{}, {}}, 0, kDefaultLabelSlack));
  CHECK(AlignedRows::create({0, 0, KeepOne{}, {}}, 0, kDefaultLabelSlack));
}

TEST_CASE("frames: deltas by both rules, of squares and of speech") {
  const json::object golden = golden_json("postprocess.json");
  const auto squares = flat(golden.at("deltas").at("input"));
  const auto speech = array_of<float>("kaldi-mfcc13.goodbye-16k.npy");
  const std::map<std::string, DeltaEdges> rules = {{"htk", DeltaEdges::htk},
                                                   {"kaldi", DeltaEdges::kaldi}};
  DeltaScratch scratch;
  for (const auto& [name, edges] : rules) {
    const DeltaOptions options{2, 2, edges};
    std::vector<float> out(squares.size() * 3);
    append_deltas(options, 1, squares, out, scratch);
    CHECK(farthest(out, flat(golden.at("deltas").at(name))) < 1e-6);
    out.resize(speech.size() * 3);
    append_deltas(options, 13, speech, out, scratch);
    CHECK(farthest(out, array_of<float>("deltas-" + name + ".kaldi-mfcc13.goodbye-16k.npy")) <
          1e-5);
  }
}

TEST_CASE("frames: mean and variance normalised, by own frames and by sums made before") {
  const json::object golden = golden_json("postprocess.json");
  const json::value& cmvn = golden.at("cmvn");
  const auto speech = array_of<float>("kaldi-mfcc13.goodbye-16k.npy");
  CmvnSums sums(13);
  const std::span<const float> all(speech);
  sums.add(all.first(13 * 20));
  CmvnSums rest(13);
  rest.add(all.subspan(13 * 20));
  sums.add(rest);
  REQUIRE(check(sums, 13));
  CmvnScratch scratch;
  for (const bool variance : {true, false}) {
    const auto wanted = flat(cmvn.at(variance ? "first_row_mean_variance" : "first_row_mean_only"));
    auto own = speech;
    normalise_own({CmvnKind::utterance, variance, 0}, 13, own, scratch);
    CHECK(farthest({own.begin(), own.begin() + 13}, wanted) < 1e-5);
    auto by_sums = speech;
    normalise_by(sums, variance, by_sums, scratch);
    CHECK(farthest(by_sums, own) < 1e-6);
    // A window that is longer than the sound has all of it.
    auto sliding = speech;
    normalise_own({CmvnKind::sliding, variance, 600}, 13, sliding, scratch);
    CHECK(sliding == own);
  }
}

TEST_CASE("frames: a sliding window is what its definition says at every frame") {
  const auto speech = array_of<float>("kaldi-mfcc13.goodbye-16k.npy");
  const auto count = static_cast<std::int64_t>(speech.size() / 13);
  CmvnScratch scratch;
  for (const std::int64_t window : {1, 2, 3, 7, 20, 84, 85, 86}) {
    auto found = speech;
    normalise_own({CmvnKind::sliding, false, static_cast<std::uint32_t>(window)}, 13, found,
                  scratch);
    std::vector<float> wanted;
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t size = std::min(window, count);
      const std::int64_t start = std::clamp(t - window / 2, std::int64_t{0}, count - size);
      for (std::int64_t d = 0; d < 13; ++d) {
        double sum = 0;
        for (std::int64_t i = start; i < start + size; ++i) {
          sum += static_cast<double>(speech[static_cast<std::size_t>(i * 13 + d)]);
        }
        wanted.push_back(
            static_cast<float>(static_cast<double>(speech[static_cast<std::size_t>(t * 13 + d)]) -
                               sum / static_cast<double>(size)));
      }
    }
    CAPTURE(window);
    CHECK(farthest(found, wanted) < 1e-5);
  }
}

TEST_CASE("frames: sums that say nothing are refused") {
  CmvnSums none(13);
  CHECK_FALSE(check(none, 13));
  CmvnSums one(2);
  one.add(std::vector<float>{1, 2});
  CHECK(check(one, 2));
  CHECK_FALSE(check(one, 3));
  one.add(std::vector<float>{std::numeric_limits<float>::infinity(), 2});
  CHECK_FALSE(check(one, 2));
}
