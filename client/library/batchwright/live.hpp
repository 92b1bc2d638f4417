#ifndef BATCHWRIGHT_LIVE_HPP
#define BATCHWRIGHT_LIVE_HPP

// The C++20 face of client.h's live feeds, header-only: owners, views, exceptions. client.h has the
// contract of each call, and the rules of lifetimes, threads and forks.
//
//     batchwright::client::Producer producer(connection, {.feed = "rollouts", .name = "actor-07"});
//     while (const auto claim = producer.claim(1, std::chrono::minutes(10))) {
//       ...make it...
//       producer.push(batchwright::client::Sequence()
//                         .add(std::span<const std::int32_t>(tokens), tokens.size())
//                         .add(reward),
//                     {.version = *claim}, std::chrono::minutes(10));
//     }

#include <batchwright/client.hpp>
#include <cstddef>
#include <type_traits>

namespace batchwright::client {

/// The values of a sequence, one for each field in the feed's order, and its key. It points to the
/// values, which must live until it is pushed.
class Sequence {
 public:
  /// Without a key: the producer names it.
  explicit Sequence(std::string key = "") : key_(std::move(key)) {}

  /// A value of `length` frames.
  template <class T>
  Sequence& add(std::span<const T> values, std::uint64_t length) {
    values_.push_back({values.data(), values.size_bytes(), length});
    return *this;
  }
  /// A scalar, which must live as long.
  template <class T>
  requires(std::is_arithmetic_v<T>) Sequence& add(const T& scalar) {
    values_.push_back({&scalar, sizeof scalar, 1});
    return *this;
  }
  /// Valid as long as this object, and until the next add().
  bw_sequence raw() const {
    return {key_.empty() ? nullptr : key_.data(), key_.size(), values_.data(), values_.size()};
  }

 private:
  std::string key_;
  std::vector<bw_value> values_;
};

/// The members of bw_origin, with the same defaults.
struct Origin {
  std::uint64_t version = 0;
  std::uint64_t version_newest = 0;  ///< 0: the same as `version`.
  std::uint64_t group = BW_NO_GROUP;
  std::uint32_t group_size = 0;
  float weight = 1.0F;
  const bw_of* of = nullptr;  ///< Of Batch::row(), where the feed joins rows.
  std::uint64_t epoch = 0;

  bw_origin raw() const {
    return {sizeof(bw_origin), version, version_newest, group, group_size, weight, of, epoch};
  }
};

/// The options of bw_produce_options, with the same defaults.
struct ProduceOptions {
  std::string feed;
  std::string name{};  ///< Empty: drawn at random.
  std::uint64_t area_bytes = 67108864;
};

/// A sequence that is written in place; the destructor gives it up. Lifetime: its memory is valid
/// until it is committed or gone.
class Room {
 public:
  Room(bw_room* raw, std::size_t fields) : raw_(raw), fields_(fields) {}

  std::size_t fields() const { return fields_; }
  /// Where the value of a field is to be written. `field` is below fields().
  template <class T>
  std::span<T> field(std::size_t field) const {
    std::uint64_t bytes = 0;
    void* start = bw_room_field(raw_.get(), field, &bytes);
    return {static_cast<T*>(start), static_cast<std::size_t>(bytes / sizeof(T))};
  }
  /// Pushes it, and returns its number; empty when the feed has ended. Errors: those of
  /// bw_commit(), after which the room is as before.
  std::optional<std::uint64_t> commit(const Origin& origin, std::chrono::milliseconds limit,
                                      std::string_view key = "") {
    const bw_origin from = origin.raw();
    std::uint64_t number = 0;
    const char* text = key.empty() ? nullptr : key.data();
    if (check(bw_commit(raw_.get(), text, key.size(), &from, limit.count(), &number)) == BW_END) {
      return std::nullopt;
    }
    static_cast<void>(raw_.release());  // the library has freed it
    return number;
  }

 private:
  struct Drop {
    void operator()(bw_room* raw) const noexcept { bw_room_drop(raw); }
  };
  std::unique_ptr<bw_room, Drop> raw_;
  std::size_t fields_;
};

/// A producer of a live feed, with the threads' rules of bw_producer. The destructor closes it;
/// what was accepted stays.
class Producer {
 public:
  /// Errors: those of bw_produce().
  Producer(const Connection& connection, const ProduceOptions& wanted) {
    bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
    options.feed = wanted.feed.c_str();
    options.name = wanted.name.empty() ? nullptr : wanted.name.c_str();
    options.area_bytes = wanted.area_bytes;
    bw_producer* raw = nullptr;
    check(bw_produce(connection.raw(), &options, &raw));
    raw_.reset(raw);
  }

  bw_producer_info info() const {
    bw_producer_info info{};
    info.struct_size = sizeof info;
    check(bw_producer_get_info(raw_.get(), &info));
    return info;
  }
  /// The version to begin so many sequences with; empty when the feed has ended. Errors: those of
  /// bw_claim().
  std::optional<std::uint64_t> claim(std::uint32_t count, std::chrono::milliseconds limit) {
    std::uint64_t version = 0;
    const bool ended = check(bw_claim(raw_.get(), count, limit.count(), &version)) == BW_END;
    return ended ? std::nullopt : std::optional(version);
  }
  /// The sequence's number; empty when the feed has ended. Errors: those of bw_push().
  std::optional<std::uint64_t> push(const Sequence& sequence, const Origin& origin,
                                    std::chrono::milliseconds limit) {
    const bw_sequence one = sequence.raw();
    const bw_origin from = origin.raw();
    std::uint64_t number = 0;
    const bool ended = check(bw_push(raw_.get(), &one, &from, limit.count(), &number)) == BW_END;
    return ended ? std::nullopt : std::optional(number);
  }
  /// How many were accepted: all, unless the feed has ended. `origins` has one for each. Errors:
  /// those of bw_push_many(); `accepted`, which may be null, is how many were then.
  std::size_t push_many(std::span<const Sequence> sequences, std::span<const Origin> origins,
                        std::chrono::milliseconds limit, std::size_t* accepted = nullptr) {
    std::vector<bw_sequence> all;
    std::vector<bw_origin> from;
    for (const Sequence& each : sequences) all.push_back(each.raw());
    for (const Origin& each : origins) from.push_back(each.raw());
    if (from.size() != all.size()) {
      throw Error(BW_INVALID_ARGUMENT, "there is not one origin for each sequence");
    }
    std::size_t taken = 0;
    const bw_status status =
        bw_push_many(raw_.get(), all.data(), all.size(), from.data(), limit.count(), &taken);
    if (accepted != nullptr) *accepted = taken;
    check(status);
    return taken;
  }
  /// Room for a sequence with these lengths, one for each field. Errors: those of bw_reserve().
  Room reserve(std::span<const std::uint32_t> lengths, std::chrono::milliseconds limit) {
    bw_room* raw = nullptr;
    if (check(bw_reserve(raw_.get(), lengths.data(), lengths.size(), limit.count(), &raw)) ==
        BW_END) {
      throw Error(BW_DISCONNECTED, "the feed has ended");
    }
    return Room(raw, lengths.size());
  }

  /// Errors: those of bw_abandon().
  void abandon(std::uint64_t group, std::uint32_t count = 0) {
    check(bw_abandon(raw_.get(), group, count));
  }
  void abandon_number(std::uint64_t number) { check(bw_abandon_number(raw_.get(), number)); }
  bw_outcomes_total outcomes(std::chrono::milliseconds limit) {
    bw_outcomes_total total{};
    total.struct_size = sizeof total;
    check(bw_outcomes(raw_.get(), limit.count(), &total));
    return total;
  }
  /// What became of at most `count` sequences from number `first` on.
  std::vector<bw_outcome> outcomes_of(std::uint64_t first, std::size_t count,
                                      std::chrono::milliseconds limit) {
    std::vector<bw_outcome> outcomes(count);
    check(bw_outcomes_of(raw_.get(), first, limit.count(), outcomes.data(), &count));
    outcomes.resize(count);
    return outcomes;
  }

 private:
  struct Close {
    void operator()(bw_producer* raw) const noexcept { bw_producer_close(raw, 10000); }
  };
  std::unique_ptr<bw_producer, Close> raw_;
};

/// A live feed as those see it that train on it. Lifetime: the connection's.
class LiveFeed {
 public:
  LiveFeed(const Connection& connection, std::string feed)
      : connection_(&connection), feed_(std::move(feed)) {}

  /// Errors: those of bw_advance().
  void advance(std::uint64_t version, bool restored = false, bool replays = false) const {
    check(
        bw_advance(connection_->raw(), feed_.c_str(), version, restored ? 1 : 0, replays ? 1 : 0));
  }
  /// The last version, once it is above `above`. Errors: those of bw_wait_version().
  std::uint64_t wait_version(std::uint64_t above, std::chrono::milliseconds limit) const {
    std::uint64_t version = 0;
    check(bw_wait_version(connection_->raw(), feed_.c_str(), above, limit.count(), &version));
    return version;
  }
  /// Has steps from this one on kept. Errors: those of bw_keep_from().
  void keep_from(std::uint64_t step) const {
    check(bw_keep_from(connection_->raw(), feed_.c_str(), step));
  }
  /// No more will come. Errors: those of bw_end_feed().
  void end() const { check(bw_end_feed(connection_->raw(), feed_.c_str())); }

 private:
  const Connection* connection_;
  std::string feed_;
};

}  // namespace batchwright::client

#endif
