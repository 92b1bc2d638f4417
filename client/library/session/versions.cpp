// What a trainer of a live feed says: versions of the model, and the feed's end.

#include <fmt/core.h>

#include <utility>

#include "client/library/session/session.h"
#include "client/library/session/turn.h"

namespace batchwright {

Error Session::no_version(const Deadline& deadline) const {
  const std::string why = link_.is_away()
                              ? fmt::format("{}, trying again", link_.away_text())
                              : fmt::format("the daemon at {} does not answer", link_.endpoint());
  return {ErrorCode::timed_out,
          fmt::format("no answer about a version within {} ms: {}", deadline.limit().count(), why)};
}

/// Waits for a daemon that knows live feeds.
Result<void> Session::await_live(const Deadline& deadline) {
  pump_until([this] { return link_.is_up(); }, deadline);
  if (failure_) return *failure_;
  if (!link_.is_up()) return no_version(deadline);
  if (link_.has(Ability::live)) return {};
  return Error{ErrorCode::unsupported,
               fmt::format("the daemon at {} is too old for live feeds", link_.endpoint())};
}

/// A daemon that comes back meanwhile is asked, too, and so is a feed in the place of one that was
/// replaced: to say a version twice changes nothing.
template <class TableT>
Result<wire::VersionT> Session::ask_version(TableT& what, const Deadline& deadline) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  const auto is_answered = [this]()
                               REQUIRES(link_mutex_) { return version_answer_ || !link_.is_up(); };
  const auto is_forgotten = [this]() REQUIRES(link_mutex_) {
    const auto replaced = static_cast<std::uint16_t>(ErrorCode::disconnected);
    return !version_answer_ || (version_answer_->code == replaced && link_.reconnects_at_all());
  };
  do {
    if (auto live = await_live(deadline); !live) return live.error();
    what.question = ++version_question_;
    if constexpr (std::is_same_v<TableT, wire::AwaitVersionT>) {
      what.timeout_ms = deadline.remaining(link_.now()).count();
    }
    version_answer_.reset();
    send(encode(TableT(what)));
    if (!pump_until(is_answered, deadline.for_answer())) return no_version(deadline);
  } while (!failure_ && is_forgotten());
  if (failure_) return *failure_;
  return *std::exchange(version_answer_, std::nullopt);
}

Result<wire::VersionT> Session::advance(wire::AdvanceT what) {
  return ask_version(what, after(link_.settings().limit));
}

Result<wire::VersionT> Session::await_version(wire::AwaitVersionT what, const Deadline& deadline) {
  return ask_version(what, deadline);
}

/// An older daemon does not answer, and ends the session over a feed that it does not have.
Result<void> Session::end_feed(wire::EndFeedT what, bool is_known) {
  const Deadline deadline = after(link_.settings().limit);
  {
    if (!take_turn()) return busy();
    const Turn turn(*this);
    if (auto live = await_live(deadline); !live) return live.error();
    if (!link_.has(Ability::ends)) {
      if (!is_known) {
        return Error{ErrorCode::not_found, fmt::format("there is no live feed \"{}\"", what.feed)};
      }
      send(encode(std::move(what)));
      if (failure_) return *failure_;
      return {};
    }
  }
  const auto answer = ask_version(what, deadline);
  if (!answer) return answer.error();
  if (answer->code != 0) return Error{static_cast<ErrorCode>(answer->code), answer->text};
  return {};
}

/// It has no answer.
Result<void> Session::keep_from(wire::KeepFromT what) {
  if (!take_turn()) return busy();
  const Turn turn(*this);
  if (auto live = await_live(after(link_.settings().limit)); !live) return live.error();
  if (!link_.has(Ability::keep_from)) {
    return Error{ErrorCode::unsupported,
                 fmt::format("the daemon at {} is too old to keep steps", link_.endpoint())};
  }
  send(encode(std::move(what)));
  if (failure_) return *failure_;
  return {};
}

}  // namespace batchwright
