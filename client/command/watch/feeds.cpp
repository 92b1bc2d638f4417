#include "client/command/watch/feeds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

const bw_feed& feed_named(const client::Connection& connection, const std::string& name) {
  std::vector<std::string_view> names;
  for (const bw_feed* const feed : connection.feeds()) {
    if (name == feed->name) return *feed;
    names.emplace_back(feed->name);
  }
  if (const auto* const absent = absent_feed(connection, name)) {
    throw client::Error(BW_NOT_FOUND,
                        fmt::format("feed \"{}\" is not served: {}", name, absent->reason));
  }
  throw client::Error(BW_NOT_FOUND, fmt::format("no feed \"{}\"; this daemon serves: {}", name,
                                                fmt::join(names, ", ")));
}

const bw_absent_feed* absent_feed(const client::Connection& connection, const std::string& name) {
  for (const bw_absent_feed* const absent : connection.absent_feeds()) {
    if (name == absent->name) return absent;
  }
  return nullptr;
}

std::string field_text(const bw_field& field) {
  std::vector<std::string> shape;
  if (field.kind != BW_SCALAR) shape.emplace_back(field.kind == BW_INDEPENDENT ? "U" : "T");
  for (std::uint32_t i = 0; i < field.ndim; ++i) shape.push_back(std::to_string(field.shape[i]));
  return fmt::format("\"{}\" [{}] {}, {}", field.name, fmt::join(shape, ", "),
                     bw_dtype_name(field.dtype), kind_name(static_cast<FieldKind>(field.kind)));
}

}  // namespace batchwright
