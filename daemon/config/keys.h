#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "daemon/config/read.h"
#include "daemon/config/values.h"

namespace batchwright {

/// What a reload does with a key whose value has changed.
enum class Applies : std::uint8_t {
  in_place,  ///< Takes up the new value; no subscription ends.
  anew,      ///< Replaces the feed; its clients subscribe again by themselves.
  restart    ///< Refuses the file: only a daemon that starts takes the value up.
};

/// Which feeds a key of [[feed]] is for.
enum class OfFeeds : std::uint8_t {
  all,
  stored  ///< Those with a dataset: it concerns stored data, and a live feed has none.
};

/// What people are told of a key.
struct KeyRow {
  std::string_view name;
  std::string_view allowed;     ///< For errors, the sample and the manual page.
  std::string_view by_default;  ///< As a file writes it; empty in [[feed]]: the key is required.
  Applies applies;
  std::string_view sentence;  ///< What it is, without the full stop.
  OfFeeds of = OfFeeds::all;
};

/// One key of a table whose values go into a Target.
template <class Target>
struct Key {
  KeyRow row;
  Fault (*read)(const ConfigNode&, Target&);
  bool (*equal)(const Target&, const Target&);
};

/// The rows of [daemon] and of [[feed]], in the order they are documented in. Those of [feed.plan]
/// are the planning room's; those of a live feed alone are in live_feed.h.
std::span<const Key<DaemonConfig>> daemon_keys();
std::span<const Key<FeedConfig>> feed_keys();

/// A key of any of the tables, as documents speak of it.
struct ConfigKey {
  /// "daemon", "feed", "feed.live", "feed.plan", "feed.features" or "feed.style".
  std::string table;
  KeyRow row;
  std::string by_default;  ///< As a file writes it; empty: there is none.
};

/// All keys, in the order they are documented in.
std::vector<ConfigKey> config_keys();

/// Has no body: a table that comes to call it does not compile, and the compiler shows the text.
void refuse_key(const char* reason);

/// The row, unless a part of it is missing.
consteval KeyRow whole_row(KeyRow row) {
  if (row.name.empty() || row.allowed.empty() || row.sentence.empty()) {
    refuse_key("a part is missing");
  }
  if (row.sentence.ends_with('.')) refuse_key("its full stop is one too many");
  return row;
}

/// Of which struct `Member` is a member.
template <class T>
struct MemberOf;
template <class T, class Struct>
struct MemberOf<T Struct::*> {
  using type = Struct;
};

/// A key of [daemon]: `Read` gives the value of `Member`. What changes in place is what the reload
/// takes up, no more and no less.
template <auto Member, auto Read>
consteval Key<DaemonConfig> daemon_key(KeyRow row) {
  using Struct = typename MemberOf<decltype(Member)>::type;
  constexpr bool adjusted = std::is_same_v<Struct, DaemonAdjustments>;
  if (row.by_default.empty()) refuse_key("a file without [daemon] is whole");
  if (row.applies != (adjusted ? Applies::in_place : Applies::restart)) {
    refuse_key("not what a reload does");
  }
  return {whole_row(row),
          [](const ConfigNode& node, DaemonConfig& d) { return Read(node, d.*Member); },
          [](const DaemonConfig& a, const DaemonConfig& b) { return a.*Member == b.*Member; }};
}

/// The member of a [[feed]], be it the configuration's own or one that the delivery room is given.
template <auto Member>
constexpr auto& member(auto& feed) {
  using Struct = typename MemberOf<decltype(Member)>::type;
  if constexpr (std::is_same_v<Struct, FeedConfig>) {
    return feed.*Member;
  } else {
    return feed.served.*Member;
  }
}

/// A key of [[feed]]. What changes in place is what Feed::adjust() takes, no more and no less.
template <auto Member, auto Read>
consteval Key<FeedConfig> feed_key(KeyRow row) {
  using Struct = typename MemberOf<decltype(Member)>::type;
  constexpr bool adjusted = std::is_same_v<Struct, FeedAdjustments>;
  if (row.applies != (adjusted ? Applies::in_place : Applies::anew)) {
    refuse_key("not what adjust() does");
  }
  return {whole_row(row),
          [](const ConfigNode& node, FeedConfig& f) { return Read(node, member<Member>(f)); },
          [](const FeedConfig& a, const FeedConfig& b) {
            return member<Member>(a) == member<Member>(b);
          }};
}

/// A key: `get` finds the part of the table that `Read` gives its value, and `shown` what of that
/// is compared.
template <class Target, auto Read, class Get, class Shown>
constexpr Key<Target> key(KeyRow row, Get, Shown) {
  return {row, [](const ConfigNode& node, Target& target) { return Read(node, Get{}(target)); },
          [](const Target& a, const Target& b) { return Shown{}(a) == Shown{}(b); }};
}

template <class Target, auto Read, class Get>
constexpr Key<Target> key(KeyRow row, Get get) {
  return key<Target, Read>(row, get, get);
}

}  // namespace batchwright
