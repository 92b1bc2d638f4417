#ifndef BATCHWRIGHT_CLIENT_HPP
#define BATCHWRIGHT_CLIENT_HPP

// The C++20 face of client.h, header-only: owners, views, exceptions. client.h has the contract of
// each call, and the rules of lifetimes, threads and forks.
//
//     batchwright::client::Connection connection;
//     auto subscription = connection.subscribe({.feed = "train"});
//     while (auto event = subscription.next(std::chrono::seconds(60)))
//       if (event.is_batch())
//         train(event.batch["features"].as<float>(), event.batch["features"].shape());

#include <batchwright/client.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchwright::client {

/// The exception of every call here: a bw_status above 0, and the text of bw_error_message().
class Error : public std::runtime_error {
 public:
  Error(bw_status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  bw_status code() const noexcept { return code_; }

 private:
  bw_status code_;
};

/// Returns news and throws errors.
inline bw_status check(bw_status status) {
  if (status > BW_OK) throw Error(status, bw_error_message());
  return status;
}

/// The element types that a tensor can be viewed as. The 16-bit floats have no type in C++20; their
/// patterns appear as std::uint16_t.
template <class T>
constexpr bool is_element(bw_dtype) {
  return false;
}
template <>
constexpr bool is_element<float>(bw_dtype dtype) {
  return dtype == BW_FLOAT32;
}
template <>
constexpr bool is_element<std::uint16_t>(bw_dtype dtype) {
  return dtype == BW_FLOAT16 || dtype == BW_BFLOAT16;
}
template <>
constexpr bool is_element<std::int64_t>(bw_dtype dtype) {
  return dtype == BW_INT64;
}
template <>
constexpr bool is_element<std::int32_t>(bw_dtype dtype) {
  return dtype == BW_INT32;
}
template <>
constexpr bool is_element<std::int16_t>(bw_dtype dtype) {
  return dtype == BW_INT16;
}
template <>
constexpr bool is_element<std::uint8_t>(bw_dtype dtype) {
  return dtype == BW_UINT8;
}

/// A tensor of a batch. Lifetime: the batch's.
class Tensor {
 public:
  explicit Tensor(const bw_tensor& raw, bool writable = false) : raw_(&raw), writable_(writable) {}

  std::string_view name() const { return raw_->name; }
  bw_dtype dtype() const { return raw_->dtype; }
  bw_kind kind() const { return raw_->kind; }
  std::span<const std::uint64_t> shape() const { return {raw_->shape, raw_->ndim}; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(raw_->data), static_cast<std::size_t>(raw_->bytes)};
  }
  /// All elements, row-major. Errors: BW_SCHEMA_MISMATCH for a different dtype.
  template <class T>
  std::span<const T> as() const {
    if (!is_element<T>(raw_->dtype)) {
      throw Error(BW_SCHEMA_MISMATCH,
                  "tensor \"" + std::string(raw_->name) + "\" is of " + bw_dtype_name(raw_->dtype));
    }
    return {static_cast<const T*>(raw_->data), raw_->bytes / sizeof(T)};
  }
  /// The same elements, writable. Errors: those of as(); BW_UNSUPPORTED when the subscription is
  /// not `writable`.
  template <class T>
  std::span<T> as_writable() const {
    const auto values = as<T>();
    if (!writable_) {
      throw Error(BW_UNSUPPORTED, "tensor \"" + std::string(raw_->name) +
                                      "\" can only be read: subscribe with writable = true");
    }
    return {const_cast<T*>(values.data()), values.size()};
  }
  const bw_tensor& raw() const { return *raw_; }

 private:
  const bw_tensor* raw_;
  bool writable_;
};

/// The memory of a batch, which stays mapped as long as this object lives.
class Memory {
 public:
  Memory() = default;
  explicit Memory(bw_memory* raw) : raw_(raw) {}
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  struct LetGo {
    void operator()(bw_memory* memory) const noexcept { bw_memory_release(memory); }
  };
  std::unique_ptr<bw_memory, LetGo> raw_;
};

/// Gives a batch back: undone where an exception is in flight that was not when the batch came.
struct GiveBack {
  int exceptions = std::uncaught_exceptions();
  void operator()(bw_batch* batch) const noexcept {
    if (std::uncaught_exceptions() > exceptions) {
      bw_return(batch);
    } else {
      bw_release(batch);
    }
  }
};

/// A batch that is held, or none. The destructor releases it: a queue's batch is done then. Where
/// an exception ends the batch's scope it is returned undone, and goes to another worker.
class Batch {
 public:
  Batch() = default;
  explicit Batch(bw_batch* raw) : raw_(raw) {}

  explicit operator bool() const { return raw_ != nullptr; }
  const bw_batch_header& header() const { return *bw_batch_get_header(raw_.get()); }
  std::span<const std::uint32_t> lengths() const { return rows(header().lengths); }
  std::span<const std::uint64_t> ordinals() const { return rows(header().ordinals); }
  /// First frame of each row; empty: every row starts at its sequence's first frame.
  std::span<const std::uint32_t> starts() const { return rows(header().starts); }
  /// Flags of each row; empty: every row is a whole sequence.
  std::span<const std::uint8_t> flags() const { return rows(header().flags); }
  /// Of a live feed's rows; empty for other feeds.
  std::span<const std::uint64_t> versions() const { return rows(header().versions); }
  std::span<const std::uint64_t> groups() const { return rows(header().groups); }
  std::span<const float> weights() const { return rows(header().weights); }
  std::span<const std::uint64_t> numbers() const { return rows(header().numbers); }
  /// Of the plans that they were forwarded from; empty: all are 0.
  std::span<const std::uint64_t> epochs() const { return rows(header().epochs); }
  /// The name of a row's producer. `row` is below header().sequences, and the feed is live.
  std::string_view producer(std::size_t row) const {
    std::size_t size = 0;
    const char* text = bw_batch_producer(raw_.get(), header().producers[row], &size);
    return {text, size};
  }
  /// The row as a sequence that is made for it names it (bw_of). Its feed's name is valid as long
  /// as the batch is held. `row` is below header().sequences.
  bw_of row(std::size_t row) const {
    bw_of of{};
    of.struct_size = sizeof of;
    check(bw_batch_row(raw_.get(), row, &of));
    return of;
  }
  /// The key of a row. `row` is below header().sequences.
  std::string_view key(std::size_t row) const {
    std::size_t size = 0;
    const char* text = bw_batch_key(raw_.get(), row, &size);
    return {text, size};
  }

  std::size_t tensors() const { return header().tensor_count; }
  /// A tensor by its position. `i` is below tensors().
  Tensor operator[](std::size_t i) const {
    return Tensor(*bw_batch_tensor(raw_.get(), i), header().writable != 0);
  }
  /// A tensor by its name. Errors: BW_NOT_FOUND.
  Tensor operator[](const char* name) const {
    const bw_tensor* found = bw_batch_tensor_named(raw_.get(), name);
    if (found == nullptr) {
      throw Error(BW_NOT_FOUND, "the batch has no tensor \"" + std::string(name) + "\"");
    }
    return Tensor(*found, header().writable != 0);
  }
  /// The tensor whose frames the lengths count.
  Tensor primary() const {
    for (std::size_t i = 0; i < tensors(); ++i) {
      if ((*this)[i].kind() == BW_PRIMARY) return (*this)[i];
    }
    throw Error(BW_SCHEMA_MISMATCH, "the batch has no primary tensor");
  }

  /// The position to resume from when this batch was the last one finished.
  bw_position position() const {
    bw_position position{};
    check(bw_batch_position(raw_.get(), &position));
    return position;
  }
  /// Keeps header().memory mapped. Empty when there is no batch.
  Memory memory() const { return Memory(bw_batch_memory(raw_.get())); }
  void release() { bw_release(raw_.release()); }
  /// Gives a queue's batch back undone.
  void return_undone() { bw_return(raw_.release()); }
  /// Marks a queue's batch as done while it is held.
  void done() { check(bw_batch_done(raw_.get())); }
  /// 1 for a queue's batch that no worker has begun yet; see bw_batch_header.
  std::uint32_t attempt() const { return header().attempt; }
  const bw_batch* raw() const { return raw_.get(); }

 private:
  template <class T>
  std::span<const T> rows(const T* values) const {
    return {values, values != nullptr ? header().sequences : 0};
  }
  std::unique_ptr<bw_batch, GiveBack> raw_;
};

/// The next event of a subscription; false once nothing follows.
struct Event {
  bw_status status = BW_END;  ///< BW_OK, BW_EPOCH_END or BW_END.
  Batch batch;                ///< Set with BW_OK.
  std::uint64_t epoch = 0;    ///< The batch's epoch, or the one that is over.

  explicit operator bool() const { return status != BW_END; }
  bool is_batch() const { return status == BW_OK; }
};

/// The options of bw_subscribe_options, with the same defaults.
struct SubscribeOptions {
  std::string feed;
  bw_mode mode = BW_REPLICA;
  std::int32_t rank = BW_AUTO;
  std::int32_t ranks = BW_AUTO;
  std::uint32_t window = 4;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t epochs = 0;
  std::optional<bw_fingerprint> fingerprint = std::nullopt;
  std::uint32_t worst_first = 0;
  bool writable = false;
  std::string terms{};            ///< Terms of the fingerprint; empty: not known.
  std::uint32_t ranks_here = 0;   ///< 0: the environment's value, or unknown.
  std::uint64_t until_epoch = 0;  ///< For BW_QUEUE: the queue's number of epochs; 0: no end.
};

/// The options of bw_connect_options, with the same defaults.
struct ConnectOptions {
  std::string program{};  ///< Empty: the name this process was started by.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  std::chrono::milliseconds reconnect = std::chrono::seconds(60);
  bool inline_batches = false;  ///< True: batches always come as messages.
  /// CURVE keys as Z85 text; all or none.
  std::string server_key{};
  std::string public_key{};
  std::string secret_key{};
};

/// A subscription, as in client.h. It may outlive its connection; its calls then fail.
class Subscription {
 public:
  explicit Subscription(bw_subscription* raw) : raw_(raw) {}

  const bw_grant& grant() const { return *bw_subscription_grant(raw_.get()); }
  /// The settings and the seed behind the granted fingerprint, one `key = value` a line.
  std::string terms() const { return bw_subscription_terms(raw_.get()); }
  /// Waits for the next event. Errors: those of bw_next(); BW_TIMED_OUT after `limit`.
  Event next(std::chrono::milliseconds limit) {
    Event event;
    bw_batch* batch = nullptr;
    event.status = check(bw_next(raw_.get(), limit.count(), &batch, &event.epoch));
    event.batch = Batch(batch);
    return event;
  }
  /// The batches that come next, at most `count` of them. Errors: those of
  /// bw_subscription_upcoming().
  std::vector<bw_upcoming> upcoming(std::size_t count, std::chrono::milliseconds limit) {
    std::vector<bw_upcoming> batches(count);
    check(bw_subscription_upcoming(raw_.get(), limit.count(), batches.data(), &count));
    batches.resize(count);
    return batches;
  }
  bw_position position() const {
    bw_position position{};
    check(bw_subscription_position(raw_.get(), &position));
    return position;
  }
  /// The number of steps of the epoch that position() names.
  std::uint64_t steps() const {
    std::uint64_t steps = 0;
    check(bw_subscription_steps(raw_.get(), nullptr, &steps));
    return steps;
  }

 private:
  struct Unsubscribe {
    void operator()(bw_subscription* raw) const noexcept { bw_unsubscribe(raw); }
  };
  std::unique_ptr<bw_subscription, Unsubscribe> raw_;
};

/// A connection, with the threads' rules of bw_connection.
class Connection {
  static const char* text(const std::string& words) {
    return words.empty() ? nullptr : words.c_str();
  }

 public:
  /// Connects; an empty endpoint is that of the environment, or the default one. Errors: those of
  /// bw_connect().
  explicit Connection(const std::string& endpoint = "",
                      std::chrono::milliseconds limit = std::chrono::seconds(10),
                      const char* program = nullptr)
      : Connection(endpoint,
                   ConnectOptions{.program = program != nullptr ? program : "", .limit = limit}) {}
  Connection(const std::string& endpoint, const ConnectOptions& wanted) {
    const bw_connect_options options{
        sizeof options,           text(wanted.program),          wanted.limit.count(),
        wanted.reconnect.count(), text(wanted.server_key),       text(wanted.public_key),
        text(wanted.secret_key),  wanted.inline_batches ? 1 : 0, 0};
    bw_connection* raw = nullptr;
    check(bw_connect(text(endpoint), &options, &raw));
    raw_.reset(raw);
  }

  bw_connection* raw() const { return raw_.get(); }
  /// Whether batches come as messages, and how often the client has reconnected.
  bw_connection_info info() const {
    bw_connection_info info{};
    info.struct_size = sizeof info;
    check(bw_connection_get_info(raw_.get(), &info));
    return info;
  }
  /// The daemon's feeds. Valid as long as this object.
  std::vector<const bw_feed*> feeds() const {
    std::vector<const bw_feed*> feeds;
    for (std::size_t i = 0; i < bw_feed_count(raw_.get()); ++i) {
      feeds.push_back(bw_feed_at(raw_.get(), i));
    }
    return feeds;
  }
  /// The feeds that were not served when the connection was made. Valid as long as this object.
  std::vector<const bw_absent_feed*> absent_feeds() const {
    std::vector<const bw_absent_feed*> feeds;
    for (std::size_t i = 0; i < bw_absent_feed_count(raw_.get()); ++i) {
      feeds.push_back(bw_absent_feed_at(raw_.get(), i));
    }
    return feeds;
  }
  /// Subscribes to a feed. Errors: those of bw_subscribe().
  Subscription subscribe(const SubscribeOptions& wanted) {
    const bw_subscribe_options options{
        sizeof options,     wanted.feed.c_str(),
        wanted.mode,        wanted.rank,
        wanted.ranks,       wanted.window,
        wanted.epoch,       wanted.step,
        wanted.epochs,      wanted.fingerprint ? &*wanted.fingerprint : nullptr,
        wanted.worst_first, 0,
        wanted.writable,    wanted.ranks_here,
        text(wanted.terms), wanted.until_epoch};
    bw_subscription* raw = nullptr;
    check(bw_subscribe(raw_.get(), &options, &raw));
    return Subscription(raw);
  }

 private:
  struct Close {
    void operator()(bw_connection* raw) const noexcept { bw_close(raw); }
  };
  std::unique_ptr<bw_connection, Close> raw_;
};

}  // namespace batchwright::client

#endif
