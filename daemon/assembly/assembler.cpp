#include "daemon/assembly/assembler.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstring>
#include <exception>
#include <utility>

#include "daemon/assembly/batch_builder.h"

namespace batchwright {
namespace {

constexpr int kPoison = 0xDB;

}  // namespace

Result<AssembledBatch> assemble_batch(const EpochSource& source, const BatchStyle& style,
                                      BatchIndex index, std::span<std::byte> slot) {
  // One a thread, so that its lists grow to the largest batch once and allocate no more.
  thread_local BatchBuilder builder;
  const auto named = [&](const Error& error) {
    return Error{error.code, "batch " + std::to_string(index.value) + " of epoch " +
                                 std::to_string(source.epoch.value) + ": " + error.message};
  };
  try {
    auto batch = builder.build({source, style, index, slot});
    if (!batch) return named(batch.error());
    return batch;
  } catch (const std::exception& failure) {
    // Nothing here throws but for lack of memory, which ends this batch and not the daemon.
    return named({ErrorCode::internal, failure.what()});
  }
}

struct Assembler::State {
  explicit State(unsigned threads) : pool(std::max(threads, 1U)) {}
  boost::asio::thread_pool pool;
};

Assembler::Assembler(unsigned threads) : state_(std::make_unique<State>(threads)) {}

Assembler::~Assembler() { state_->pool.join(); }

void Assembler::submit(std::shared_ptr<const EpochSource> source,
                       std::shared_ptr<const BatchStyle> style, BatchIndex index,
                       std::span<std::byte> slot, Done done) {
  boost::asio::post(state_->pool, [source = std::move(source), style = std::move(style), index,
                                   slot, done = std::move(done)] {
    done(assemble_batch(*source, *style, index, slot));
  });
}

void Assembler::poison(std::span<std::byte> slot, std::function<void()> done) {
  boost::asio::post(state_->pool, [slot, done = std::move(done)] {
    std::memset(slot.data(), kPoison, slot.size());
    done();
  });
}

}  // namespace batchwright
