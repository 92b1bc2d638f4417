#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Memory of this process alone, in huge pages where the system gives them on request.
class CopyBuffer {
 public:
  /// Null when there is no memory.
  static std::shared_ptr<CopyBuffer> make(std::size_t bytes);

  std::span<std::byte> bytes() const { return {start_.get(), start_.get_deleter().bytes}; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* start) const noexcept;
  };
  using Start = std::unique_ptr<std::byte, Unmap>;

  explicit CopyBuffer(Start start) : start_(std::move(start)) {}

  const Start start_;
};

/// Where copies of batches lie, used again and again: a page costs a fault when it is first
/// touched, which is several times the copying of it. There are as many as are out at the same
/// time, each as large as the largest batch so far, or smaller.
/// Threads: any.
class CopyBuffers {
 public:
  /// The one that came back last, for it may be in the processor's cache. Null when there is no
  /// memory.
  std::shared_ptr<CopyBuffer> take(std::size_t bytes);
  void give_back(std::shared_ptr<CopyBuffer> buffer) noexcept;
  /// Frees what is not out, and each of the others when it comes back.
  void close();

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<CopyBuffer>> free_ GUARDED_BY(mutex_);
  std::size_t largest_ GUARDED_BY(mutex_) = 0;
  std::size_t out_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace batchwright
