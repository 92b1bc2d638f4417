#include "daemon/assembly/disk/read_queue.h"

#include <algorithm>
#include <utility>

#include "daemon/assembly/row_parts.h"
#include "daemon/assembly/sources/epoch_source.h"

namespace batchwright {
namespace {

/// What a part of a sequence needs of its record: its frames, and the page that says where they
/// are.
std::size_t part_bytes(const Schema& schema, const Row& row) {
  std::size_t bytes = std::size_t{4} << 10;
  for (const FieldSpec& field : schema.fields) bytes += row.length * frame_bytes(field);
  return bytes;
}

std::vector<WantedRow> in_stretches(const WantedRow& row) {
  if (!row.whole || row.bytes <= ReadQueue::kStretchBytes) return {row};
  std::vector<WantedRow> stretches;
  for (std::size_t at = 0; at < row.record.size(); at += ReadQueue::kStretchBytes) {
    WantedRow stretch = row;
    stretch.record =
        row.record.subspan(at, std::min(ReadQueue::kStretchBytes, row.record.size() - at));
    stretch.bytes = stretch.record.size();
    stretches.push_back(std::move(stretch));
  }
  return stretches;
}

}  // namespace

std::map<std::uint64_t, std::vector<WantedRow>> wanted_rows(const EpochSource& source,
                                                            BatchIndex index) {
  std::vector<Row> rows;
  source.plan.rows(index, rows);
  std::map<std::uint64_t, std::vector<WantedRow>> wanted;
  const RowPlaces places = source.found->find(*source.snapshot, index, rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const auto& place = places[r];
    // What cannot be found is reported when it is assembled.
    if (!place) continue;
    const bool whole = is_whole(row);
    const std::size_t most = place->bytes.size();
    const std::size_t bytes =
        whole ? most : std::min(most, part_bytes(source.snapshot->schema(), row));
    wanted[place->device].push_back({place->bytes, row, bytes, whole});
  }
  return wanted;
}

bool ReadQueue::Lane::has_work() const {
  return !shelf.empty() || std::any_of(entries.begin(), entries.end(),
                                       [](const Entry& entry) { return !entry.on_shelf; });
}

void ReadQueue::set_limits(std::size_t ahead_bytes, std::size_t window_bytes) {
  ahead_limit_ = ahead_bytes;
  shelf_bytes_ = window_bytes;
}

bool ReadQueue::empty() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [](const auto& lane) { return lane.second.has_work(); });
}

bool ReadQueue::is_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane.second.entries.empty(); });
}

std::uint64_t ReadQueue::least_served() const {
  std::optional<std::uint64_t> least;
  for (const auto& [feed, lane] : lanes_) {
    if (lane.has_work()) least = std::min(least.value_or(lane.served_bytes), lane.served_bytes);
  }
  return least.value_or(0);
}

void ReadQueue::put(const std::string& feed, WantedBatch batch) {
  Lane& lane = lanes_[feed];
  if (!lane.has_work()) lane.served_bytes = std::max(lane.served_bytes, least_served());
  drop_gone(lane);
  if (lane.entries.size() == kCapacity) forget(lane, lane.entries.begin());
  for (const WantedRow& row : batch.rows) ++wanted_[row.record.data()];
  lane.entries.push_back({std::move(batch)});
}

/// Batches of epochs that are no longer served would count as ahead forever.
void ReadQueue::drop_gone(Lane& lane) {
  while (!lane.entries.empty() && lane.entries.front().batch.source.expired()) {
    forget(lane, lane.entries.begin());
  }
}

void ReadQueue::forget(Lane& lane, std::deque<Entry>::iterator entry) {
  for (const WantedRow& row : entry->batch.rows) {
    const auto found = wanted_.find(row.record.data());
    if (--found->second == 0) wanted_.erase(found);
  }
  lane.ahead_bytes -= entry->read_bytes;
  const BatchId id = entry->batch.id;
  std::erase_if(lane.shelf, [&id](const Item& item) { return item.id == id; });
  lane.entries.erase(entry);
}

void ReadQueue::used(const std::string& feed, const BatchId& id) {
  const auto lane = lanes_.find(feed);
  if (lane == lanes_.end()) return;
  auto& entries = lane->second.entries;
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&id](const Entry& each) { return each.batch.id == id; });
  if (entry != entries.end()) forget(lane->second, entry);
}

/// At least one batch, or as many as fill the window.
void ReadQueue::fill_shelf(Lane& lane) const {
  std::size_t bytes = 0;
  for (Entry& entry : lane.entries) {
    if (entry.on_shelf) continue;
    if (bytes >= shelf_bytes_) break;
    entry.on_shelf = true;
    for (const WantedRow& row : entry.batch.rows) {
      for (WantedRow& stretch : in_stretches(row)) {
        bytes += stretch.bytes;
        lane.shelf.push_back({entry.batch.id, std::move(stretch)});
      }
    }
  }
  std::stable_sort(lane.shelf.begin(), lane.shelf.end(), [](const Item& a, const Item& b) {
    return std::less<>()(a.row.record.data(), b.row.record.data());
  });
}

ReadQueue::Lane* ReadQueue::next_lane(std::string& feed) {
  const auto feeds = std::count_if(lanes_.begin(), lanes_.end(),
                                   [](const auto& each) { return !each.second.entries.empty(); });
  if (feeds == 0) return nullptr;
  const std::size_t limit = ahead_limit_ / static_cast<std::size_t>(feeds);
  Lane* next = nullptr;
  for (auto& [name, lane] : lanes_) {
    if (!lane.has_work()) continue;
    if (lane.ahead_bytes != 0 && lane.ahead_bytes >= limit) continue;
    if (next != nullptr && next->served_bytes <= lane.served_bytes) continue;
    next = &lane;
    feed = name;
  }
  return next;
}

std::optional<Read> ReadQueue::take() {
  Read read;
  Lane* lane = nullptr;
  do {
    lane = next_lane(read.feed);
    if (lane == nullptr) return {};
    if (lane->shelf.empty()) fill_shelf(*lane);
  } while (lane->shelf.empty());  // a batch may have no rows: of lanes that all ran out
  while (!lane->shelf.empty() && read.bytes < kLeastReadBytes) {
    Item& item = lane->shelf.front();
    const auto entry =
        std::find_if(lane->entries.begin(), lane->entries.end(),
                     [&item](const Entry& each) { return each.batch.id == item.id; });
    // One epoch a read: what it reads is kept alive by its epoch.
    const auto& source = entry->batch.source;
    const bool same = !read.source.owner_before(source) && !source.owner_before(read.source);
    if (!read.rows.empty() && !same) break;
    read.source = source;
    read.times = entry->batch.times;
    read.bytes += item.row.bytes;
    entry->read_bytes += item.row.bytes;
    read.rows.push_back(std::move(item.row));
    lane->shelf.pop_front();
  }
  lane->ahead_bytes += read.bytes;
  lane->served_bytes += read.bytes;
  return read;
}

std::size_t ReadQueue::ahead_bytes() const {
  std::size_t sum = 0;
  for (const auto& [feed, lane] : lanes_) sum += lane.ahead_bytes;
  return sum;
}

}  // namespace batchwright
