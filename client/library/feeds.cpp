#include "client/library/feeds.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {
namespace {

bool alike(const bw_field& one, const bw_field& other) {
  const std::string_view name = one.name;
  if (name != other.name || one.kind != other.kind || one.dtype != other.dtype) return false;
  if (one.ndim != other.ndim || one.category_count != other.category_count) return false;
  if (!std::equal(one.shape, one.shape + one.ndim, other.shape)) return false;
  return std::equal(one.categories, one.categories + one.category_count, other.categories,
                    [](std::string_view a, std::string_view b) { return a == b; });
}

}  // namespace

const bw_feed* Feeds::find_live(std::string_view name) const {
  for (const auto& feed : feeds_) {
    if (feed->name == name && feed->face.live != 0) return &feed->face;
  }
  return nullptr;
}

std::string difference(const bw_feed& one, const bw_feed& other) {
  if (one.world != other.world) {
    return fmt::format("a world of {} and one of {}", one.world, other.world);
  }
  if (one.live != other.live) return "a live feed and one of a dataset";
  if (one.layout != other.layout) return "batch-major and time-major layout";
  if (one.field_count != other.field_count) {
    return fmt::format("{} and {} fields", one.field_count, other.field_count);
  }
  for (std::size_t i = 0; i < one.field_count; ++i) {
    if (!alike(*one.fields[i], *other.fields[i])) {
      return fmt::format("field \"{}\" differs", one.fields[i]->name);
    }
  }
  return {};
}

Result<std::unique_ptr<Feeds::Field>> Feeds::field_from(const wire::FieldInfo& info) {
  auto field = std::make_unique<Field>();
  field->name = info.name()->str();
  const std::size_t dimensions = info.shape() != nullptr ? info.shape()->size() : 0;
  if (dimensions > BW_MAX_DIMENSIONS) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("field \"{}\" has {} dimensions; at most {} are allowed", field->name,
                             dimensions, BW_MAX_DIMENSIONS)};
  }
  if (info.categories() != nullptr) {
    for (const auto* category : *info.categories()) field->categories.push_back(category->str());
  }
  for (const std::string& text : field->categories) field->category_texts.push_back(text.c_str());
  bw_field& face = field->face;
  face.name = field->name.c_str();
  face.kind = static_cast<bw_kind>(info.kind());
  face.dtype = static_cast<bw_dtype>(info.dtype());
  face.ndim = static_cast<std::uint32_t>(dimensions);
  if (dimensions != 0) std::copy(info.shape()->begin(), info.shape()->end(), face.shape);
  face.category_count = static_cast<std::uint32_t>(field->categories.size());
  face.categories = field->category_texts.empty() ? nullptr : field->category_texts.data();
  return field;
}

Result<std::unique_ptr<Feeds::Feed>> Feeds::feed_from(const wire::FeedInfo& info) {
  auto feed = std::make_unique<Feed>();
  feed->name = info.name()->str();
  if (info.fields() != nullptr) {
    for (const auto* field_info : *info.fields()) {
      auto field = field_from(*field_info);
      if (!field) return field.error();
      feed->field_faces.push_back(&(*field)->face);
      feed->fields.push_back(std::move(*field));
    }
  }
  feed->face = {feed->name.c_str(),
                info.sequences(),
                info.world(),
                static_cast<bw_layout>(info.layout()),
                feed->field_faces.size(),
                feed->field_faces.data(),
                0,
                0,
                0,
                0,
                0,
                feed->field_faces.size(),
                nullptr};
  if (const auto* live = info.live()) {
    feed->face.live = 1;
    feed->face.max_length = live->max_length();
    feed->face.max_bytes = live->max_bytes();
    feed->face.allow_nan = live->allow_nan() ? 1 : 0;
    if (live->joins() == nullptr || live->joined() == 0) return feed;
    if (live->joined() >= feed->fields.size()) {
      return Error{ErrorCode::malformed_message,
                   fmt::format("feed \"{}\" joins {} of its {} fields", feed->name, live->joined(),
                               feed->fields.size())};
    }
    feed->joins = live->joins()->str();
    feed->face.joins = feed->joins.c_str();
    feed->face.pushed_count -= live->joined();
  }
  return feed;
}

Result<std::unique_ptr<const Feeds>> Feeds::from(const wire::Welcome& welcome) {
  std::unique_ptr<Feeds> feeds(new Feeds);
  if (welcome.feeds() != nullptr) {
    for (const auto* info : *welcome.feeds()) {
      auto feed = feed_from(*info);
      if (!feed) return feed.error();
      feeds->feeds_.push_back(std::move(*feed));
    }
  }
  if (welcome.absent() != nullptr) {
    for (const auto* absent : *welcome.absent()) {
      const auto* why = absent->why();
      feeds->absent_.push_back({absent->name()->str(), why != nullptr ? why->str() : ""});
    }
  }
  for (const Absent& absent : feeds->absent_) {
    feeds->absent_faces_.push_back({absent.name.c_str(), absent.reason.c_str()});
  }
  return std::unique_ptr<const Feeds>(std::move(feeds));
}

}  // namespace batchwright
