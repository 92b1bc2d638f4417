#include <fmt/core.h>

#include <string>

#include "daemon/planning/settings.h"

// What concerns several settings at once. A setting that nothing would read is refused: it most
// likely means that another one is missing.

namespace batchwright {
namespace {

class Checker {
 public:
  explicit Checker(const PlanSettings& settings) : s_(settings) {}

  std::string_view complaint() const { return complaint_; }

  /// Sets of `name` have an effect only if `used`.
  void only_if(bool used, std::string_view name, std::string_view when) {
    // A default cannot be told from a value that is not set, and does no harm.
    const std::string value = get_setting(s_, name);
    if (used || value == get_setting(PlanSettings{}, name)) return;
    say(fmt::format("{} = {} has a meaning only with {}", name, value, when));
  }

  /// `name` must be set if `needed`.
  void needs(bool needed, std::string_view name, std::string_view when) {
    if (!needed || !get_setting(s_, name).empty()) return;
    say(fmt::format("{} needs {}", when, name));
  }

  void refuse(bool wrong, std::string why) {
    if (wrong) say(std::move(why));
  }

 private:
  void say(std::string text) {
    // The first alone: the ones behind it are often its consequences.
    if (complaint_.empty()) complaint_ = std::move(text);
  }

  const PlanSettings& s_;
  std::string complaint_;
};

void check_select(const PlanSettings& s, Checker& check) {
  const bool fixed = s.select == Select::fixed;
  const bool linear = s.select == Select::linear;
  const bool cosine = s.select == Select::cosine;
  check.only_if(fixed || linear || cosine, "usage", "select = fixed, linear or cosine");
  check.only_if(fixed, "alpha", "select = fixed");
  check.only_if(linear, "beta", "select = linear");
  check.only_if(cosine, "lambda", "select = cosine");
  check.only_if(linear || cosine, "flat_after", "select = linear or cosine");
  check.only_if(linear || cosine, "floor", "select = linear or cosine");
  check.only_if(s.select != Select::full, "epochs", "select = fixed, linear or cosine");
  check.refuse(fixed && s.usage.has_value() == s.alpha.has_value(),
               "select = fixed needs either usage or alpha");
  check.refuse(linear && s.usage.has_value() == s.beta.has_value(),
               "select = linear needs either usage or beta");
  check.refuse(cosine && s.usage.has_value() == s.lambda.has_value(),
               "select = cosine needs either usage or lambda");
  check.needs(linear || cosine, "flat_after", "select = linear or cosine");
  check.needs((linear || cosine) && s.usage, "epochs", "usage");
  // With floor = 0 an epoch behind flat_after would have one sequence; none may come there.
  const bool ends_in_time = s.epochs != 0 && s.epochs - 1 <= s.flat_after;
  check.refuse((linear || cosine) && s.flat_after != 0 && s.floor == 0 && !ends_in_time,
               fmt::format("floor = 0 leaves one sequence to each epoch after flat_after = {}; set "
                           "floor above 0, or epochs = {} where training ends there",
                           s.flat_after, s.flat_after + 1));
  check.refuse(
      (linear || cosine) && s.epochs != 0 && s.flat_after >= s.epochs,
      fmt::format("flat_after = {} must be less than epochs = {}", s.flat_after, s.epochs));
}

void check_chunk(const PlanSettings& s, Checker& check) {
  const bool unrolled = s.lanes != 0;
  check.only_if(s.chunk != 0, "hop", "chunk");
  check.refuse(
      s.hop > s.chunk && s.chunk != 0,
      fmt::format("hop = {} must not exceed chunk = {}: frames would be skipped", s.hop, s.chunk));
  check.only_if(s.chunk != 0, "min_chunk", "chunk");
  check.refuse(s.min_chunk > s.chunk && s.chunk != 0,
               fmt::format("min_chunk = {} must not exceed chunk = {}", s.min_chunk, s.chunk));
  check.refuse(
      s.min_chunk > s.min_length,
      fmt::format(
          "min_chunk = {} needs min_length = {} or more: shorter sequences would have no chunk",
          s.min_chunk, s.min_chunk));
  check.only_if(unrolled, "unroll", "lanes");
  check.needs(unrolled, "unroll", "lanes");
  check.refuse(unrolled && s.chunk != 0, "lanes and chunk exclude each other");
  // A batch of lanes has one row a lane, whatever its length.
  check.refuse(unrolled && s.cut != Cut::fixed,
               "lanes makes the batches itself: cut must stay fixed");
  check.refuse(unrolled && s.shuffle != Shuffle::off,
               "lanes needs shuffle = off: a lane's rows must stay in order");
  check.refuse(unrolled && (s.order == Order::bucket_span || s.order == Order::bucket_optimal),
               "lanes cannot follow buckets of lengths: use another order");
  check.only_if(!unrolled, "size", "batches without lanes");
  check.only_if(!unrolled, "length_multiple", "batches without lanes, whose length is unroll");
  check.only_if(!unrolled, "size_multiple", "batches without lanes");
  check.only_if(!unrolled, "max_size", "batches without lanes");
  check.only_if(!unrolled, "remainder", "batches without lanes: each rank has its own");
  check.refuse(
      s.max_length != 0 && s.min_length > s.max_length,
      fmt::format("min_length = {} must not exceed max_length = {}", s.min_length, s.max_length));
  check.only_if(!s.mix_weights.empty(), "mix_exhausted", "mix_weights");
}

void check_order(const PlanSettings& s, Checker& check) {
  const auto is = [&s](Order order) { return s.order == order; };
  check.only_if(is(Order::semi_sorted), "randomization", "order = semi-sorted");
  check.only_if(is(Order::alternated), "bins", "order = alternated");
  check.only_if(is(Order::bucket), "bucket_size", "order = bucket");
  check.only_if(is(Order::bucket_span), "bucket_span", "order = bucket-span");
  check.only_if(is(Order::bucket_span), "bucket_boundaries", "order = bucket-span");
  check.only_if(is(Order::bucket_optimal), "bucket_count", "order = bucket-optimal");
  check.needs(is(Order::alternated), "bins", "order = alternated");
  check.needs(is(Order::bucket), "bucket_size", "order = bucket");
  check.refuse(is(Order::bucket_span) && (s.bucket_span != 0) == !s.bucket_boundaries.empty(),
               "order = bucket-span needs either bucket_span or bucket_boundaries");
  check.needs(is(Order::bucket_optimal), "bucket_count", "order = bucket-optimal");
  check.only_if(is(Order::file), "order_file", "order = file");
  check.only_if(is(Order::file), "row_weight", "order = file");
  check.needs(is(Order::file), "order_file", "order = file");
}

/// The file says which rows there are, and in which order they and their batches come.
void check_order_file(const PlanSettings& s, Checker& check) {
  check.refuse(s.cut == Cut::file && s.order != Order::file, "cut = file needs order = file");
  if (s.order != Order::file) return;
  for (const std::string_view name :
       {"select", "chunk", "mix_weights", "min_length", "max_length", "shuffle"}) {
    check.only_if(false, name, "an order that is not file: the file has the rows as they come");
  }
  if (s.cut != Cut::file) return;
  for (const std::string_view name : {"size_multiple", "max_size", "last", "remainder"}) {
    check.only_if(false, name, "a cut that is not file: the file has the batches as they come");
  }
}

void check_cut(const PlanSettings& s, Checker& check) {
  const bool sized = s.cut == Cut::fixed || s.cut == Cut::dynamic;
  check.only_if(sized, "size", "cut = fixed or dynamic");
  check.only_if(!sized && s.cut != Cut::file, "max_frames",
                "cut = frames, quadratic or real-frames");
  check.needs(!sized && s.cut != Cut::file, "max_frames", "cut = frames, quadratic or real-frames");
  check.only_if(s.cut == Cut::real_frames, "max_padded", "cut = real-frames");
  check.refuse(
      s.max_padded != 0 && s.max_padded < s.max_frames,
      fmt::format("max_padded = {} must not be below max_frames = {}", s.max_padded, s.max_frames));
  check.only_if(s.cut == Cut::quadratic, "quadratic_scale", "cut = quadratic");
  check.needs(s.cut == Cut::quadratic, "quadratic_scale", "cut = quadratic");
  check.only_if(s.cut != Cut::fixed && s.cut != Cut::file, "rule",
                "cut = dynamic, frames, quadratic or real-frames");
  check.refuse(
      s.max_size != 0 && s.size_multiple > s.max_size,
      fmt::format("size_multiple = {} must not exceed max_size = {}", s.size_multiple, s.max_size));
  const bool fixed = s.cut == Cut::fixed && s.lanes == 0;
  check.refuse(
      fixed && s.size % s.size_multiple != 0,
      fmt::format("size = {} must be a multiple of size_multiple = {}", s.size, s.size_multiple));
  check.refuse(fixed && s.max_size != 0 && s.size > s.max_size,
               fmt::format("size = {} must not exceed max_size = {}", s.size, s.max_size));
}

}  // namespace

Result<void> check_settings(const PlanSettings& settings) {
  // A value that was not set from text is in range if its text is accepted.
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(settings, row.name);
    // Thrown away: only whether the value is accepted counts.
    PlanSettings scratch;
    if (value.empty()) continue;
    if (auto set = set_setting(scratch, row.name, value); !set) return set;
  }
  Checker check(settings);
  check_order_file(settings, check);
  check_select(settings, check);
  check_chunk(settings, check);
  check_order(settings, check);
  check_cut(settings, check);
  if (check.complaint().empty()) return {};
  return Error{ErrorCode::bad_configuration, std::string(check.complaint())};
}

}  // namespace batchwright
