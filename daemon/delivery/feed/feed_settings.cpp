#include "daemon/delivery/feed/feed_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace batchwright {
namespace {

std::string plan_text(const PlanSettings& plan) {
  std::string text = fmt::format("planner = {}\n", kPlannerVersion);
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(plan, row.name);
    if (!value.empty()) text += fmt::format("{} = {}\n", row.name, value);
  }
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

Fingerprint fingerprint_by(const Snapshot& snapshot, const FeedSettings& settings,
                           const std::string& made) {
  const std::uint64_t plan = settings_hash(settings.plan);
  const Schema& schema = row_schema(snapshot, settings.recipe.get());
  return {snapshot.content(), fnv1a(plan, made + look_text(settings, schema)), settings.plan.seed};
}

}  // namespace

std::string terms_text(const FeedSettings& settings, const Schema& schema) {
  return plan_text(settings.plan) + made_text(settings) + look_text(settings, schema);
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
