#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/formats.h"
#include "tests/simulation/world/world.h"

// What the clients' half of the simulation and the daemon's know of each other. The two cannot see
// each other's classes, which partly have the same names.

namespace batchwright::simulation {

struct Line;
struct ArenaLine;

/// An arena's memory, which the daemon keeps.
struct ArenaFile {
  int descriptor = -1;
  std::uint64_t bytes = 0;
};

/// A daemon, as the network reaches it.
class Listener {
 public:
  virtual ~Listener() = default;

  /// Differs from those of all other daemons.
  virtual std::uint64_t number() const = 0;
  /// `frame`: what came after the message; empty for most.
  virtual void hear(const std::shared_ptr<Line>& line, const std::vector<std::byte>& bytes,
                    const std::vector<std::byte>& frame) = 0;
  /// Whether the session is here, and has no such connection yet.
  virtual bool bind(const std::shared_ptr<ArenaLine>& line) = 0;
  /// The client has closed its connection to the arena socket.
  virtual void on_lost(SessionId id) = 0;
  /// An arena, or an area of this session.
  virtual std::optional<ArenaFile> find_arena(SessionId session, ArenaNumber number) = 0;
  /// On its event loop, unless it has ended by then.
  virtual void post(Duration delay, std::function<void()> work) = 0;
};

/// A batch that a program holds.
struct Holding {
  LeaseNumber lease;
  std::uint64_t epoch = 0;  ///< These two as its header had them when it was taken.
  std::uint64_t index = 0;
  std::uint64_t data = 0;                ///< Of the fingerprint.
  const wire::Batch* content = nullptr;  ///< As its bytes are now.
  const std::byte* mapping = nullptr;    ///< The first byte of its arena; null for a message.
};

/// What a producer writes into each frame of the sequence with this key.
constexpr std::uint32_t written_for(std::string_view key) {
  std::uint32_t hash = 2166136261;
  for (const char each : key) hash = (hash ^ static_cast<std::uint8_t>(each)) * 16777619;
  return hash;
}

/// Sees what programs do.
class Onlooker {
 public:
  virtual ~Onlooker() = default;

  virtual void mapped(const std::byte* mapping, int descriptor) = 0;
  virtual void taken(const Holding& batch) = 0;
  virtual void let_go(const Holding& batch) = 0;
  /// Of a queue: the program says that the batch is done.
  virtual void completed(const Holding& batch) = 0;
  /// The steps of an epoch of these data.
  virtual std::uint64_t steps(std::uint64_t data, std::uint64_t epoch) = 0;
};

}  // namespace batchwright::simulation
