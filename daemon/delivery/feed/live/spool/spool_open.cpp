// How a spool is opened: whose it is, and whether it can be this feed's.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "daemon/delivery/feed/live/spool/spool.h"
#include "daemon/delivery/feed/live/spool/spool_values.h"

namespace batchwright {
namespace {

constexpr std::uint16_t kVersion = 1;

std::vector<std::string> field_texts(const Schema& schema) {
  std::vector<std::string> texts;
  for (const FieldSpec& field : schema.fields) {
    texts.push_back(fmt::format("{} {} {} [{}]", field.name, dtype_name(field.dtype),
                                kind_name(field.kind), fmt::join(field.shape, ", ")));
  }
  return texts;
}

/// The lanes of a step, on which what they are at depends.
std::string lanes_text(const LiveSettings& pool) {
  if (pool.step_unit != StepUnit::lanes) return "without lanes";
  return fmt::format("{{ lanes = {}, unroll = {} }}", pool.step, pool.unroll);
}

/// The machine's boot: another one is a sign of a loss of power. Empty where it is not told.
std::string this_boot() {
  std::string text = file_text("/proc/sys/kernel/random/boot_id", 64).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Error damaged_spool(const std::string& name, const std::string& what) {
  return {ErrorCode::corrupt_record,
          fmt::format("{} is damaged: {}; a loss of power can do that where live.spool_sync = "
                      "\"none\". Move the folder away to begin with an empty one",
                      name, what)};
}

Spool::Spool(std::unique_ptr<KeyedStore> store, const FeedSettings& settings)
    : store_(std::move(store)), schema_(settings.live->schema) {
  queue_.begin(Epoch{0});
}

Result<Spool::Opened> Spool::open(const FeedSettings& settings, std::uint64_t new_incarnation) {
  const std::filesystem::path& folder = settings.live->spool;
  auto store = KeyedStore::open("spool " + folder.string(), folder, kSpoolTables,
                                settings.live->spool_synced);
  if (!store) return store.error();
  Opened opened;
  opened.spool.reset(new Spool(std::move(*store), settings));
  if (auto begun = opened.spool->begin(settings, new_incarnation, opened); !begun) {
    return begun.error();
  }
  opened.queue = opened.spool->queue_;
  opened.queue.keep_all(WorkQueue::Time::max());
  for (const auto& [lease, given] : opened.queue.out()) {
    opened.next_lease = std::max(opened.next_lease, LeaseNumber{lease.value + 1});
  }
  return opened;
}

Result<void> Spool::begin(const FeedSettings& settings, std::uint64_t new_incarnation,
                          Opened& opened) {
  if (auto read = read_head(); !read) return read;
  const bool is_new = head_.version == 0;
  if (!is_new) {
    if (auto sound = check(settings); !sound) return sound;
    if (auto read = this->read(opened.feed); !read) return read;
  }
  const std::string boot = this_boot();
  // What the kernel had not written went with the power: steps may have been delivered that are to
  // be cut again, and sequences been accepted that are not here.
  const bool may_lack = !head_.synced && head_.boot != boot;
  const bool is_over = head_.ended && opened.feed.sequences.empty();
  if (is_over) {
    if (auto emptied = empty(opened.feed); !emptied) return emptied;
  }
  if (is_new || may_lack || is_over) head_.incarnation = new_incarnation;
  head_.version = kVersion;
  head_.feed = settings.name;
  head_.fields = field_texts(schema_);
  head_.world = settings.plan.world;
  head_.groups = word_of(kLiveGroups, settings.live->pool.groups);
  head_.lanes = lanes_text(settings.live->pool);
  head_.synced = settings.live->spool_synced;
  head_.boot = boot;
  if (is_new || is_over) head_.tops = {0};
  opened.feed.incarnation = head_.incarnation;
  return store_->write([this](Batch& batch) {
    note_head(batch);
    note_queue(batch);
  });
}

/// A feed that has ended, and of which all was delivered, begins as a new one.
Result<void> Spool::empty(SpooledFeed& feed) {
  auto emptied = store_->clear();
  if (!emptied) return emptied;
  std::destroy_at(&feed);  // GCC 12 at -O3 takes `feed = {}` for a use after free
  std::construct_at(&feed);
  head_ = {};
  queue_.begin(Epoch{0});
  first_chunk_.clear();
  lanes_.clear();
  group_changes_ = 0;
  return {};
}

Result<void> Spool::read_head() {
  return read_table(kSpoolHead, [this](std::uint64_t key, std::span<const std::byte> value) {
    if (key == 0) return take_head(value);
    return key == 1 ? take_queue(value) : take_lanes(value);
  });
}

Result<void> Spool::take_head(std::span<const std::byte> value) {
  auto head = unpack<wire::SpoolHead>(value);
  if (!head || head->version == 0) return damaged_spool(name(), "its head makes no sense");
  if (head->version > kVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("{} has format version {}; this program knows up to {}", name(),
                             head->version, kVersion)};
  }
  if (head->tops.empty() || head->tops.size() != head->restored_to.size() + 1 ||
      head->first_ahead > head->steps || head->kept_from > head->steps) {
    return damaged_spool(name(), "its head makes no sense");
  }
  head_ = std::move(*head);
  return {};
}

Result<void> Spool::take_queue(std::span<const std::byte> value) {
  const auto packed = unpack<wire::SpoolQueue>(value);
  if (!packed) return damaged_spool(name(), "its queue makes no sense");
  WorkQueue::State state;
  state.unused = packed->unused;
  state.back = packed->back;
  for (const wire::SpoolLease& each : packed->out) {
    state.out[LeaseNumber{each.lease()}] = {BatchIndex{each.index()}, QueueOwner{each.owner()}, {}};
  }
  for (const auto& each : packed->undone) {
    WorkQueue::Undone& undone = state.undone[each->index];
    undone.times = each->times;
    for (const std::uint64_t owner : each->by) undone.by.insert(QueueOwner{owner});
    undone.set_aside = each->set_aside;
  }
  queue_.resume(std::move(state));
  return {};
}

Result<void> Spool::take_lanes(std::span<const std::byte> value) {
  const auto packed = unpack<wire::SpoolLanes>(value);
  if (!packed) return damaged_spool(name(), "its lanes make no sense");
  lanes_.clear();
  for (const wire::SpoolLane& each : packed->busy) {
    lanes_.push_back({each.lane(), each.next(), each.arrival()});
  }
  return {};
}

/// Whether it can be this feed's.
Result<void> Spool::check(const FeedSettings& settings) const {
  const auto other = [this](std::string_view what, const auto& found, const auto& allowed) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("{} is of {} {}; allowed: {}, or another folder", name(), what, found,
                             allowed)};
  };
  const auto fields = field_texts(schema_);
  const std::string groups(word_of(kLiveGroups, settings.live->pool.groups));
  if (head_.feed != settings.name) return other("feed", head_.feed, settings.name);
  if (head_.fields != fields) {
    return other("fields", fmt::format("{}", fmt::join(head_.fields, ", ")),
                 fmt::format("{}", fmt::join(fields, ", ")));
  }
  if (head_.world != settings.plan.world) {
    return other("plan.world", head_.world, settings.plan.world);
  }
  if (head_.groups != groups) return other("live.groups", head_.groups, groups);
  const std::string lanes = lanes_text(settings.live->pool);
  if (head_.lanes != lanes) return other("live.step", head_.lanes, lanes);
  return {};
}

}  // namespace batchwright
