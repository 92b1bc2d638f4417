#include "client/aligned_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {
namespace {

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

struct Block {
  std::unique_ptr<std::byte, Free> memory;
  std::size_t capacity = 0;
};

/// Larger than asked for by an eighth at most, so that batches of like size share blocks.
Block make_block(std::size_t bytes) {
  const std::size_t grain = std::max(kTensorAlignment, std::bit_floor(bytes) / 8);
  const std::size_t capacity = (bytes / grain + 1) * grain;
  Block block{{}, capacity};
  block.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kTensorAlignment, capacity)));
  if (!block.memory) throw std::bad_alloc();
  return block;
}

bool smaller(const Block& one, const Block& other) { return one.capacity < other.capacity; }

}  // namespace

/// The blocks that nobody holds.
class AlignedPool::Idle {
 public:
  /// The smallest with room for so many bytes, else the largest, else none.
  Block take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return {};
    auto chosen = std::lower_bound(blocks_.begin(), blocks_.end(), Block{{}, bytes}, smaller);
    if (chosen == blocks_.end()) --chosen;
    Block block = std::move(*chosen);
    blocks_.erase(chosen);
    return block;
  }

  void give(Block block) noexcept try {
    const std::lock_guard lock(mutex_);
    blocks_.insert(std::upper_bound(blocks_.begin(), blocks_.end(), block, smaller),
                   std::move(block));
  } catch (const std::bad_alloc&) {  // no room to remember it: it is freed
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;  ///< In ascending order of capacity.
};

/// A block in use, which goes home at the end.
class AlignedPool::Held {
 public:
  Held(std::weak_ptr<Idle> idle, Block block) : idle_(std::move(idle)), block_(std::move(block)) {}
  ~Held() {
    if (const auto idle = idle_.lock()) idle->give(std::move(block_));
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::weak_ptr<Idle> idle_;
  Block block_;
};

AlignedPool::AlignedPool() : idle_(std::make_shared<Idle>()) {}

Payload AlignedPool::copy(std::span<const std::byte> bytes) {
  Block block = idle_->take(bytes.size());
  if (block.capacity < bytes.size()) {
    block = {};  // outgrown; freed first
    block = make_block(bytes.size());
  }
  std::byte* const memory = block.memory.get();
  std::memcpy(memory, bytes.data(), bytes.size());
  auto held = std::make_shared<Held>(idle_, std::move(block));
  return {std::move(held), {memory, bytes.size()}};
}

}  // namespace batchwright
