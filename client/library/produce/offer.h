#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/ids.h"
#include "client/library/produce/area_store.h"
#include "formats/formats.h"

namespace batchwright {

/// Memory of our own for sequences that travel in a frame: 64-byte aligned, all zeros.
Payload frame_memory(std::uint64_t bytes);

/// The sequences of one Push, from when they are laid out until the daemon has answered. They lie
/// in the producer's area or in a frame behind the message.
/// Threads: one at a time.
class Offer {
 public:
  /// In the area. It keeps the room of what is not accepted only if it `owns` it.
  explicit Offer(std::shared_ptr<AreaStore> store, bool owns = true)
      : store_(std::move(store)), owns_(owns) {}
  /// In this frame, which is written to.
  explicit Offer(Payload frame) : frame_(std::move(frame)) {}

  bool is_framed() const { return store_ == nullptr; }
  std::size_t size() const { return push_.sequences.size(); }
  /// Whether one Push can name one more: its row, if any, is of the same batches as the others.
  bool has_place(std::size_t key_bytes, std::size_t fields, const bw_of* of) const;
  /// Room for the next sequence: empty when the area has none for now. A frame has enough.
  std::optional<std::uint64_t> take_room(std::uint64_t bytes);
  void give_room_back(std::uint64_t place, std::uint64_t bytes);
  std::span<std::byte> at(std::uint64_t place, std::uint64_t bytes) const;

  /// One more, which lies at `place`.
  struct Sequence {
    std::uint64_t place = 0;
    std::uint64_t bytes = 0;  ///< As it is laid out.
    std::string_view key;
    std::span<const FieldValue> values;  ///< For their lengths.
  };
  void add(const Sequence& sequence, const bw_origin& origin);

  std::uint64_t first() const { return push_.first; }
  /// Numbers them from `first` on; their room is the daemon's from now on.
  void number(std::uint64_t first);
  /// The daemon has those below `next`; the room of the others comes back.
  void settle(std::uint64_t next);
  /// How many it has.
  std::size_t accepted() const { return accepted_; }
  /// Another daemon, or another session, has those below `next` of them, and is offered the rest
  /// from that number on: in its own area, or where there is none, or too small a one, in a frame.
  void move_to(const std::shared_ptr<AreaStore>& store, std::uint64_t next);
  /// From now on it owns the room that it has, which was lent to it.
  void keep_room() { owns_ = true; }

  /// Who asks, and for how long.
  struct Asking {
    std::uint32_t producer = 0;
    std::uint32_t question = 0;
    std::chrono::milliseconds limit{0};
  };
  /// The message, for the whole frame.
  flatbuffers::DetachedBuffer message(const Asking& asking);
  const Payload& frame() const { return frame_; }
  /// Whether it has a frame that is larger than a message's `most`.
  bool travels_in_parts(std::size_t most) const {
    return is_framed() && frame_.bytes.size() > most;
  }
  /// The part of it that begins at `at`, and its message.
  Payload part(std::uint64_t at, std::size_t most) const;
  flatbuffers::DetachedBuffer part_message(const Asking& asking, std::uint64_t at);

 private:
  void drop_first(std::size_t count);
  bool move_into(const std::shared_ptr<AreaStore>& store);
  void move_into_frame();

  std::shared_ptr<AreaStore> store_;  ///< Null: in the frame.
  Payload frame_;
  bool owns_ = true;
  std::uint64_t frame_used_ = 0;
  wire::PushT push_;
  std::vector<std::uint64_t> bytes_;  ///< Of each, as it is laid out.
  std::size_t accepted_ = 0;
};

}  // namespace batchwright
