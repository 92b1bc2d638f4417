#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"
#include "formats/formats.h"

namespace batchwright {

/// The feeds that a daemon named in its Welcome, as the C ABI shows them: those that it serves, and
/// those that it cannot serve for now.
/// Threads: immutable. The structs point into this object, which therefore does not move.
class Feeds {
 public:
  /// Errors: malformed_message.
  static Result<std::unique_ptr<const Feeds>> from(const wire::Welcome& welcome);

  std::size_t size() const { return feeds_.size(); }
  const bw_feed& at(std::size_t i) const { return feeds_[i]->face; }
  /// Null where there is no live feed with this name.
  const bw_feed* find_live(std::string_view name) const;
  const std::vector<bw_absent_feed>& absent() const { return absent_faces_; }

  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

 private:
  struct Field {
    std::string name;
    std::vector<std::string> categories;
    std::vector<const char*> category_texts;
    bw_field face{};
  };
  struct Feed {
    std::string name;
    std::vector<std::unique_ptr<Field>> fields;
    std::vector<const bw_field*> field_faces;
    std::string joins;
    bw_feed face{};
  };
  struct Absent {
    std::string name;
    std::string reason;
  };
  Feeds() = default;
  static Result<std::unique_ptr<Field>> field_from(const wire::FieldInfo& info);
  static Result<std::unique_ptr<Feed>> feed_from(const wire::FeedInfo& info);

  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<Absent> absent_;
  std::vector<bw_absent_feed> absent_faces_;
};

/// The difference between batches of one and of the other, in words; empty when there is none.
std::string difference(const bw_feed& one, const bw_feed& other);

}  // namespace batchwright
