#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <future>
#include <map>
#include <optional>
#include <set>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/find_pages.h"
#include "client/command/keys.h"
#include "client/command/output.h"
#include "client/library/batchwright/client.hpp"
#include "formats/formats.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// What a daemon says of one feed, or why it does not.
struct Serving {
  std::uint64_t sequences = 0;
  std::uint64_t steps = 0;
  std::uint32_t world = 0;
  Fingerprint fingerprint;
  std::string terms;
  std::string trouble;  ///< Empty: none.
};

struct Daemon {
  std::string name;                      ///< As it was given.
  std::map<std::string, Serving> feeds;  ///< By name.
  std::string trouble;                   ///< Of the daemon as a whole; empty: none.
};

/// HOST:PORT is short for tcp://HOST:PORT.
std::string endpoint_of(const std::string& given) {
  return given.find("://") == given.npos ? "tcp://" + given : given;
}

Serving ask_feed(client::Connection& connection, const bw_feed& feed, std::uint64_t epoch) {
  Serving serving;
  serving.sequences = feed.sequences;
  serving.world = feed.world;
  try {
    client::SubscribeOptions wanted;
    wanted.feed = feed.name;
    wanted.mode = BW_REPLICA;
    wanted.window = 1;
    wanted.epoch = epoch;
    wanted.epochs = 1;
    const client::Subscription subscription = connection.subscribe(wanted);
    const bw_grant& grant = subscription.grant();
    serving.steps = grant.steps;
    serving.fingerprint = {grant.fingerprint.data, grant.fingerprint.settings,
                           grant.fingerprint.seed};
    serving.terms = subscription.terms();
  } catch (const client::Error& error) {
    serving.trouble = error.what();
  }
  return serving;
}

Daemon ask_daemon(const std::string& name, client::ConnectOptions wanted,
                  const CheckOptions& options) {
  Daemon daemon{name, {}, {}};
  try {
    wanted.limit = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
    // By messages: what only asks takes no slot from those that train.
    wanted.inline_batches = true;
    wanted.program = "batchwright check";
    client::Connection connection(endpoint_of(name), wanted);
    for (const bw_feed* feed : connection.feeds()) {
      if (!options.feed.empty() && options.feed != feed->name) continue;
      daemon.feeds[feed->name] = ask_feed(connection, *feed, options.epoch);
    }
    for (const bw_absent_feed* feed : connection.absent_feeds()) {
      if (!options.feed.empty() && options.feed != feed->name) continue;
      daemon.feeds[feed->name].trouble = fmt::format("not served: {}", feed->reason);
    }
  } catch (const client::Error& error) {
    daemon.trouble = error.what();
  }
  return daemon;
}

/// All at once: the wait for one that is down is not multiplied by those that are.
std::vector<Daemon> ask_all(const CheckOptions& options, const client::ConnectOptions& wanted) {
  // Where no thread is to be had one is asked after the other.
  constexpr auto kAtOnce = std::launch::async | std::launch::deferred;
  std::vector<std::future<Daemon>> asked;
  for (const std::string& name : options.daemons) {
    asked.push_back(std::async(kAtOnce, ask_daemon, name, wanted, std::cref(options)));
  }
  std::vector<Daemon> daemons;
  for (auto& answer : asked) daemons.push_back(answer.get());
  return daemons;
}

/// One feed at all daemons.
class Comparison {
 public:
  Comparison(std::string feed, const std::vector<Daemon>& daemons)
      : feed_(std::move(feed)), daemons_(daemons), most_(find_most()) {}

  /// The daemon whose plan most others have, too; the first of those named where it is a tie. Null
  /// where none serves the feed.
  const Daemon* most() const { return most_; }
  std::size_t agreeing() const { return most_ == nullptr ? 0 : as(*most_); }

  /// What is wrong with one daemon; empty when nothing is.
  std::string fault(const Daemon& daemon) const {
    if (!daemon.trouble.empty()) return daemon.trouble;
    const Serving* const here = serving(daemon);
    if (here == nullptr) return "is not served";
    if (!here->trouble.empty()) return here->trouble;
    const Serving& there = *serving(*most_);
    const std::string differs =
        describe_change({there.fingerprint, there.terms}, {here->fingerprint, here->terms},
                        {"differ", "at " + most_->name, "here"});
    if (differs.empty() || here->sequences == there.sequences) return differs;
    return fmt::format("{} ({} sequences at {}, {} here)", differs, there.sequences, most_->name,
                       here->sequences);
  }

 private:
  const Serving* serving(const Daemon& daemon) const {
    const auto found = daemon.feeds.find(feed_);
    return found == daemon.feeds.end() ? nullptr : &found->second;
  }
  bool is_sound(const Daemon& daemon) const {
    const Serving* const found = serving(daemon);
    return found != nullptr && found->trouble.empty();
  }
  std::size_t as(const Daemon& daemon) const {
    return static_cast<std::size_t>(
        std::count_if(daemons_.begin(), daemons_.end(), [&](const Daemon& other) {
          return is_sound(other) && serving(other)->fingerprint == serving(daemon)->fingerprint;
        }));
  }
  const Daemon* find_most() const {
    const Daemon* most = nullptr;
    for (const Daemon& daemon : daemons_) {
      if (is_sound(daemon) && (most == nullptr || as(daemon) > as(*most))) most = &daemon;
    }
    return most;
  }

  std::string feed_;
  const std::vector<Daemon>& daemons_;
  const Daemon* most_;
};

std::set<std::string> feeds_of(const std::vector<Daemon>& daemons, const std::string& wanted) {
  std::set<std::string> feeds;
  if (!wanted.empty()) feeds.insert(wanted);
  for (const Daemon& daemon : daemons) {
    for (const auto& [name, serving] : daemon.feeds) feeds.insert(name);
  }
  return feeds;
}

/// A fault of one daemon, with the feed that it is of; without one it is of the daemon.
struct Fault {
  std::string daemon;
  std::string feed;
  std::string what;
};

std::vector<Fault> faults_of(const std::vector<Daemon>& daemons,
                             const std::set<std::string>& feeds) {
  std::vector<Fault> faults;
  for (const Daemon& daemon : daemons) {
    if (!daemon.trouble.empty()) faults.push_back({daemon.name, "", daemon.trouble});
  }
  for (const std::string& feed : feeds) {
    const Comparison comparison(feed, daemons);
    for (const Daemon& daemon : daemons) {
      const std::string what = comparison.fault(daemon);
      if (daemon.trouble.empty() && !what.empty()) faults.push_back({daemon.name, feed, what});
    }
  }
  return faults;
}

void print_feeds(const std::vector<Daemon>& daemons, const std::set<std::string>& feeds,
                 const CheckOptions& options) {
  for (const std::string& feed : feeds) {
    const Comparison comparison(feed, daemons);
    if (comparison.most() == nullptr) continue;
    const Serving& most = comparison.most()->feeds.at(feed);
    fmt::print(
        "feed \"{}\": {} of {} daemons have {} sequences, {} steps in epoch {}, world {}, "
        "fingerprint {}\n",
        feed, comparison.agreeing(), daemons.size(), most.sequences, most.steps, options.epoch,
        most.world, to_string(most.fingerprint));
  }
}

json::object to_json(const Daemon& daemon) {
  json::object shown{{"daemon", daemon.name}};
  if (!daemon.trouble.empty()) shown["error"] = daemon.trouble;
  json::object feeds;
  for (const auto& [name, serving] : daemon.feeds) {
    json::object feed{{"sequences", serving.sequences}, {"world", serving.world}};
    if (serving.trouble.empty()) {
      feed["steps"] = serving.steps;
      feed["fingerprint"] = to_string(serving.fingerprint);
    } else {
      feed["error"] = serving.trouble;
    }
    feeds[name] = std::move(feed);
  }
  shown["feeds"] = std::move(feeds);
  return shown;
}

void print_json(const std::vector<Daemon>& daemons, const std::vector<Fault>& faults,
                const CheckOptions& options) {
  json::array all, wrong;
  for (const Daemon& daemon : daemons) all.push_back(to_json(daemon));
  for (const Fault& fault : faults) {
    wrong.push_back({{"daemon", fault.daemon}, {"feed", fault.feed}, {"fault", fault.what}});
  }
  print_json_line(json::object{{"agree", faults.empty()},
                               {"epoch", options.epoch},
                               {"daemons", std::move(all)},
                               {"faults", std::move(wrong)}});
}

}  // namespace

int run_check(const CheckOptions& given) {
  CheckOptions options = given;
  if (options.daemons.empty()) options.daemons = endpoints_in(default_endpoint());
  const auto wanted = connect_options(options.keys);
  if (!wanted) return fail(wanted.error());
  const std::vector<Daemon> daemons = ask_all(options, *wanted);
  const auto feeds = feeds_of(daemons, options.feed);
  const std::vector<Fault> faults = faults_of(daemons, feeds);
  if (options.json) {
    print_json(daemons, faults, options);
  } else {
    print_feeds(daemons, feeds, options);
    for (const Fault& fault : faults) {
      warn(fault.feed.empty()
               ? fmt::format("{}: {}", fault.daemon, fault.what)
               : fmt::format("{}: feed \"{}\": {}", fault.daemon, fault.feed, fault.what));
    }
  }
  return faults.empty() ? kDone : kFailed;
}

}  // namespace batchwright
