#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/command/interrupt.h"
#include "client/library/batchwright/client.hpp"

namespace batchwright {

/// A version that stands for the last one that was announced, in an origin.
inline constexpr std::uint64_t kNewestVersion = UINT64_MAX;

/// A producer for commands: it waits as long as it takes, says what it waits for, and ends in order
/// with Ctrl-C. A daemon that comes back is pushed the rest.
/// Lifetime: the connection's, which must have one endpoint, and the interrupt's. Threads: one.
class PatientProducer {
 public:
  /// What became of a call that waits.
  enum class Outcome : std::uint8_t { done, ended, interrupted };
  struct Sequences {
    std::span<const bw_sequence> sequences;
    std::span<const bw_origin> origins;  ///< One for each; kNewestVersion is filled in.
  };

  /// `name` may be empty: drawn at random. Throws client::Error, as bw_produce() says.
  PatientProducer(const client::Connection& connection, const std::string& feed,
                  const std::string& name, const Interrupt& interrupt);

  /// The feed as it takes sequences. Lifetime: the connection's.
  const bw_feed& feed() const { return *feed_; }
  bw_producer_info info() const;

  /// Waits until `count` sequences more may be pushed without growing too stale. Throws
  /// client::Error, as bw_claim() says.
  Outcome claim(std::uint32_t count, std::uint64_t& version);
  /// Pushes all of them. Throws client::Error, as bw_push_many() says; accepted() has how many were
  /// before.
  Outcome push(const Sequences& what);
  /// Sequences that were accepted, in all calls.
  std::uint64_t accepted() const { return accepted_; }
  /// Whether a daemon came back that knows nothing of earlier numbers.
  bool was_forgotten() const { return info().incarnation != first_incarnation_; }

 private:
  /// A push that the user has interrupted may wait for room without end.
  struct Close {
    void operator()(bw_producer* raw) const noexcept { bw_producer_close(raw, 1000); }
  };
  template <class Call>
  bw_status repeat(const Call& call, const char* what);
  void fill_in_newest(std::span<bw_origin> origins);

  const client::Connection* connection_;
  const Interrupt* interrupt_;
  std::string feed_name_;
  std::unique_ptr<bw_producer, Close> raw_;
  const bw_feed* feed_ = nullptr;
  std::uint64_t first_incarnation_ = 0;
  std::uint64_t known_version_ = 0;
  std::uint64_t accepted_ = 0;
};

}  // namespace batchwright
