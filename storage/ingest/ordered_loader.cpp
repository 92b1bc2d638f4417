#include "storage/ingest/ordered_loader.h"

#include <exception>
#include <string>
#include <utility>

// Threads of its own, not boost::asio::thread_pool: a pool bounds neither the items nor the bytes
// that are loaded ahead, and hands nothing out in order.

namespace batchwright {
namespace {

/// Enough for a slow file not to hold up the other threads.
constexpr std::size_t kItemsPerThread = 8;

/// Bytes that a loaded item holds until it is handed out.
std::uint64_t size_of(const Result<Loaded>& item) {
  std::uint64_t bytes = 0;
  if (item) {
    for (const LoadedField& field : item->fields) bytes += field.bytes.size();
  }
  return bytes;
}

std::uint64_t cost_safely(const OrderedLoader::Cost& cost, std::size_t item) {
  try {
    return cost ? cost(item) : 0;
  } catch (const std::exception&) {  // out of memory, as load() will find
    return 0;
  }
}

}  // namespace

OrderedLoader::OrderedLoader(std::size_t items, std::size_t threads, Load load, Cost cost,
                             std::uint64_t held_bytes)
    : items_(items),
      load_(std::move(load)),
      cost_(std::move(cost)),
      most_bytes_(held_bytes),
      window_(threads * kItemsPerThread) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

OrderedLoader::~OrderedLoader() {
  {
    // Under the lock, or a thread between its look and its wait would miss the notice.
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  threads_.clear();  // joins
}

/// The item that is due may always begin: else one above the bound would wait forever.
bool OrderedLoader::may_begin() const {
  if (begun_ == handed_out_) return true;
  return begun_ < handed_out_ + window_.size() && held_bytes_ < most_bytes_;
}

bool OrderedLoader::has_room(std::size_t item, std::uint64_t bytes) const {
  return item == handed_out_ || held_bytes_ + bytes <= most_bytes_;
}

void OrderedLoader::work() {
  MutexLock lock(mutex_);
  while (true) {
    room_.wait(lock,
               [this]() REQUIRES(mutex_) { return stopping_ || begun_ == items_ || may_begin(); });
    if (stopping_ || begun_ == items_) return;
    // In order: the item that is due next is always among those that have begun.
    const std::size_t item = begun_++;
    lock.unlock();
    // Without the lock: it reads the file's header.
    const std::uint64_t reserved = cost_safely(cost_, item);
    lock.lock();
    room_.wait(lock, [this, item, reserved]()
                         REQUIRES(mutex_) { return stopping_ || has_room(item, reserved); });
    if (stopping_) return;
    held_bytes_ += reserved;
    lock.unlock();
    Result<Loaded> result = as_result(ErrorCode::does_not_fit, "", [&] { return load_(item); });
    lock.lock();
    // What was an estimate becomes what is there.
    held_bytes_ += size_of(result);
    held_bytes_ -= reserved;
    window_[item % window_.size()] = std::move(result);
    // One thread calls next(), and waits for this item alone.
    if (item == handed_out_) loaded_.notify_one();
    if (reserved > 0) room_.notify_all();
  }
}

Result<Loaded> OrderedLoader::next() {
  MutexLock lock(mutex_);
  // may_begin() keeps items a window apart, so no other item has this place.
  auto& place = window_[handed_out_ % window_.size()];
  loaded_.wait(lock, [&place] { return place.has_value(); });
  Result<Loaded> item = std::move(*place);
  place.reset();
  ++handed_out_;
  held_bytes_ -= size_of(item);
  lock.unlock();
  room_.notify_all();
  return item;
}

}  // namespace batchwright
