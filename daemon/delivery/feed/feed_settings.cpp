#include "daemon/delivery/feed/feed_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>

namespace batchwright {
namespace {

std::string plan_text(const PlanSettings& plan) {
  std::string text = fmt::format("planner = {}\n", kPlannerVersion);
  each_term(plan, [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{} = {}\n", name, value);
  });
  return text;
}

/// How a batch looks. The order of the fields is that of its tensors.
std::string look_text(const FeedSettings& settings, const Schema& schema) {
  const bool time_major = settings.layout == Layout::time_major;
  std::string text = fmt::format("layout = {}\n", time_major ? "time-major" : "batch-major");
  std::string names;
  for (const FieldSpec& field : schema.fields) {
    names += names.empty() ? field.name : "," + field.name;
  }
  text += fmt::format("fields = {}\n", names);
  for (const FieldSpec& field : schema.fields) {
    text += fmt::format("kind.{} = {}\n", field.name, kind_name(field.kind));
    text +=
        fmt::format("dtype.{} = {}\n", field.name, dtype_name(cast_dtype(settings.casts, field)));
    text += fmt::format("shape.{} = [{}]\n", field.name, fmt::join(field.shape, ","));
    if (field.kind == FieldKind::scalar) continue;
    text += fmt::format("padding.{} = {}\n", field.name, padding_value(settings.padding, field));
  }
  return text;
}

/// How rows are made, if they are.
std::string made_text(const FeedSettings& settings) {
  return settings.recipe ? settings.recipe->text() : std::string();
}

/// What a live feed's steps are of, beside world, seed and cut, which its plan has. Limits may
/// change while it serves.
std::string live_text(const FeedSettings& settings) {
  if (!settings.live) return {};
  const LiveSettings& live = settings.live->pool;
  std::string text;
  const auto add = [&text](std::string_view key, const auto& value) {
    text += fmt::format("live.{} = {}\n", key, value);
  };
  add(fmt::format("step.{}", word_of(kStepUnits, live.step_unit)), live.step);
  if (live.unroll != 0) add("step.unroll", live.unroll);
  add("groups", word_of(kLiveGroups, live.groups));
  add("select", word_of(kLiveSelects, live.select));
  const LiveJoin& join = settings.live->join;
  if (!join.from.empty()) add("join", fmt::format("{}:{}", join.from, fmt::join(join.fields, ",")));
  return text;
}

Fingerprint fingerprint_by(const Snapshot& snapshot, const FeedSettings& settings,
                           const std::string& made) {
  const std::uint64_t plan = settings_hash(settings.plan);
  const Schema& schema = row_schema(snapshot, settings.recipe.get());
  return {snapshot.content(), fnv1a(plan, made + look_text(settings, schema)), settings.plan.seed};
}

}  // namespace

std::string terms_text(const FeedSettings& settings, const Schema& schema) {
  return plan_text(settings.plan) + live_text(settings) + made_text(settings) +
         look_text(settings, schema);
}

Fingerprint fingerprint_of_live(const FeedSettings& settings, std::uint64_t incarnation) {
  const std::uint64_t plan = settings_hash(settings.plan);
  const std::string text = live_text(settings) + look_text(settings, settings.live->schema);
  return {incarnation, fnv1a(plan, text), settings.plan.seed};
}

std::optional<Fingerprint> fingerprint_of_first_draws(const Snapshot& snapshot,
                                                      const FeedSettings& settings) {
  if (!settings.recipe || settings.recipe->first_draws_text() == settings.recipe->text()) return {};
  return fingerprint_by(snapshot, settings, settings.recipe->first_draws_text());
}

Fingerprint fingerprint_of(const Snapshot& snapshot, const FeedSettings& settings) {
  return fingerprint_by(snapshot, settings, made_text(settings));
}

}  // namespace batchwright
