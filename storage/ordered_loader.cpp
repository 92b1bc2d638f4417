#include "storage/ordered_loader.h"

#include <exception>
#include <string>
#include <utility>

namespace batchwright {
namespace {

/// Enough for a slow file not to hold up the other threads.
constexpr std::size_t kItemsPerThread = 8;
constexpr std::size_t kHeldBytes = std::size_t{128} << 20;

std::size_t size_of(const Result<Features>& item) { return item ? item->bytes.size() : 0; }

Result<Features> load_safely(const OrderedLoader::Load& load, std::size_t item) {
  try {
    return load(item);
  } catch (const std::exception& thrown) {  // out of memory
    return Error{ErrorCode::does_not_fit, thrown.what()};
  }
}

}  // namespace

OrderedLoader::OrderedLoader(std::size_t items, std::size_t threads, Load load)
    : items_(items), load_(std::move(load)), window_(threads * kItemsPerThread) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

OrderedLoader::~OrderedLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  threads_.clear();  // joins
}

/// The item that is due may always begin: else one above the bound would wait for ever.
bool OrderedLoader::may_begin() const {
  if (begun_ == handed_out_) return true;
  return begun_ < handed_out_ + window_.size() && held_bytes_ < kHeldBytes;
}

void OrderedLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] { return stopping_ || begun_ == items_ || may_begin(); });
    if (stopping_ || begun_ == items_) return;
    const std::size_t item = begun_++;
    lock.unlock();
    Result<Features> result = load_safely(load_, item);
    lock.lock();
    held_bytes_ += size_of(result);
    window_[item % window_.size()] = std::move(result);
    if (item == handed_out_) loaded_.notify_one();
  }
}

Result<Features> OrderedLoader::next() {
  std::unique_lock lock(mutex_);
  auto& place = window_[handed_out_ % window_.size()];
  loaded_.wait(lock, [&place] { return place.has_value(); });
  Result<Features> item = std::move(*place);
  place.reset();
  ++handed_out_;
  held_bytes_ -= size_of(item);
  lock.unlock();
  room_.notify_all();
  return item;
}

}  // namespace batchwright
