#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace batchwright {

/// The kinds of errors, by what the caller does next. Numbers are part of the wire protocol and of
/// the C ABI: append, never renumber.
enum class ErrorCode : std::uint16_t {
  not_found = 1,              ///< Nothing under this name or id. The caller may skip it.
  corrupt_record = 2,         ///< Stored bytes fail verification. Skip it, or stop the feed.
  store_unavailable = 3,      ///< The dataset cannot be read at all. Stop the feed.
  invalid_argument = 4,       ///< The call is wrong. Mend the call.
  bad_configuration = 5,      ///< A configuration or its value is wrong. Mend the file.
  already_exists = 6,         ///< The key is taken. The caller may skip it.
  schema_mismatch = 7,        ///< The value does not fit the dataset's schema.
  unsupported_version = 8,    ///< Bytes of a version this program does not know. Upgrade one side.
  does_not_fit = 9,           ///< More memory or room is needed than allowed. Raise the limit.
  fingerprint_mismatch = 10,  ///< The plan is not the one the caller had. Start again knowingly.
  malformed_message = 11,     ///< Bytes from a peer fail verification. Count, answer, drop.
  timed_out = 12,             ///< Nothing came within the time limit. Wait again, or give up.
  disconnected = 13,          ///< The peer is gone. Connect again.
  io_error = 14,              ///< The operating system refused. The message names the call.
  infeasible = 15,            ///< No plan can meet these settings. The message gives the range.
  unsupported = 16,           ///< This build or machine cannot do it.
  forked = 17,                ///< Called in a forked child. Connect again in the child.
  busy = 18,                  ///< Another thread is in this call. Use one object per thread.
  internal = 19,              ///< A broken promise of our own. Report it.
};

/// The code's name as written above, for logs and `--json` output.
std::string_view to_string(ErrorCode code);

/// An error: what to do next, and a sentence that names what was found, where, and what is allowed.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

/// A value or the reason why there is none. Names follow std::expected.
/// Asking for the side that is not there is our own bug and aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return *get<0>(); }
  const T& value() const& { return *get<0>(); }
  T&& value() && { return std::move(*get<0>()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T value_or(T other) && { return has_value() ? std::move(*get<0>()) : std::move(other); }
  T* operator->() { return get<0>(); }
  const T* operator->() const { return get<0>(); }

  const Error& error() const { return *get<1>(); }

 private:
  template <std::size_t I>
  auto* get() {
    auto* found = std::get_if<I>(&state_);
    if (found == nullptr) std::abort();
    return found;
  }
  template <std::size_t I>
  const auto* get() const {
    const auto* found = std::get_if<I>(&state_);
    if (found == nullptr) std::abort();
    return found;
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return has_value(); }
  const Error& error() const {
    if (!failed_) std::abort();
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace batchwright
