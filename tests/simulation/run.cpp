#include "tests/simulation/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/cast.h"

namespace batchwright::simulation {
namespace {

using std::chrono::seconds;

constexpr seconds kFaultsEnd{20};
/// What is left to do then takes no longer, whatever the faults have left.
constexpr seconds kAllEnd{140};
/// Then every session has ended: a remote client that is lost is lost for all after ten seconds.
constexpr seconds kAtRest{15};
constexpr std::uint64_t kMostThings = 3'000'000;

std::string describe_pool(const LiveSettings& pool) {
  const auto or_none = [](const std::optional<std::uint64_t>& number) {
    return number ? std::to_string(*number) : "none";
  };
  return fmt::format(
      "live: a step of {} {}, unroll {}, window {}, linger {}, groups {}, closed after {} ms: {}, "
      "staleness "
      "{}, {}, {} zeroed, claims end after {} ms, reuse {}, {}, pool of {}, {} bytes\n",
      pool.step, word_of(kStepUnits, pool.step_unit), pool.unroll, pool.window,
      or_none(pool.linger_ms), word_of(kLiveGroups, pool.groups), pool.group_timeout_ms,
      word_of(kLateGroups, pool.late_groups), or_none(pool.max_staleness),
      word_of(kStalePolicies, pool.stale), pool.zero_most_stale, pool.claim_timeout_ms, pool.reuse,
      word_of(kLiveSelects, pool.select), pool.pool_sequences, pool.pool_bytes);
}

}  // namespace

Run::Run(FeedKind kind, std::uint64_t seed, Marks& marks, const std::string& folder, bool tells_all)
    : world_(seed, marks, tells_all),
      cast_(std::make_unique<Cast>()),
      feed_(kind == FeedKind::live ? draw_live_feed(*cast_) : draw_feed(*cast_)),
      machine_(world_, feed_, cast_->live ? 0 : cast_->world * cast_->steps * 2, folder) {
  cast_->live ? draw_live_programs(*cast_) : draw_programs(*cast_);
  draw_faults(*cast_);
}

/// Programs go before the daemon, and it before its machine.
Run::~Run() { launchers_.clear(); }

void Run::await(Duration end, const std::string& what, const std::function<bool()>& done) {
  const Time last = world_.now() - world_.passed() + end;
  while (!done()) {
    if (!world_.step(last)) world_.fail(what);
    if (world_.things_done() > kMostThings) world_.fail("the run turns in a circle");
  }
}

bool Run::have_ended(bool endless) const {
  return std::all_of(launchers_.begin(), launchers_.end(), [endless](const auto& each) {
    return each->has_ended() || (each->is_endless() && !endless);
  });
}

void Run::execute() {
  start_daemon();
  world_.after(kFaultsEnd, [this] { end_faults(); });
  await(kAllEnd, "a program does not end",
        [this] { return world_.passed() >= kFaultsEnd && have_ended(false); });
  over_ = true;
  await(kAllEnd, "a program that looks on does not end", [this] { return have_ended(true); });
  // A worker's last release may be lost with its feed, and a power cut may undo more. So people
  // start it once more, and where nothing is left it ends at once.
  for (const auto& launcher : launchers_) {
    const bool may_lack = machine_.feeds_lost != 0 && !cast_->live;
    if (launcher->is_worker() && may_lack) launcher->start_again();
  }
  await(world_.passed() + kAllEnd, "a worker that is started again does not end",
        [this] { return have_ended(true); });
  const std::uint64_t queue_epochs = cast_->workers != 0 && !cast_->live ? cast_->epochs : 0;
  await(world_.passed() + kAtRest, "sessions or slots are left, or a queue's epoch is not over",
        [&] { return daemon_ && daemon_->is_at_rest(queue_epochs); });
  if (cast_->live && cast_->is_fair && cast_->has_quotas) daemon_->check_all_done();
}

std::string Run::describe() const {
  const FeedSettings& feed = machine_.settings;
  std::string text =
      fmt::format("feed: world {}, {} steps, {} slots, window {}, max_lead {}{}{}{}{}\n",
                  feed.plan.world, cast_->steps, feed.slots, feed.max_window, feed.max_lead,
                  feed.journal.empty() ? "" : ", journal", feed.ledger.empty() ? "" : ", ledger",
                  feed.follow ? ", follow" : "", feed.poison ? ", poison" : "");
  if (feed.live) text += describe_pool(feed.live->pool);
  for (const auto& launcher : launchers_) {
    text += launcher->describe() + "\n";
    for (const auto& process : launcher->processes()) {
      text += fmt::format("  {}{}{}\n", process->name(), process->is_remote() ? ", remote" : "",
                          process->has_ended() ? ", ended" : "");
    }
  }
  return text + (daemon_ ? daemon_->describe() : "no daemon\n");
}

}  // namespace batchwright::simulation
