#include "tests/simulation/clients/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/clients/transport.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Holding holding_of(const bw_batch& batch) {
  return {batch.lease.number, batch.header.epoch,
          batch.header.index, batch.header.fingerprint.data,
          batch.content,      batch.payload.shared ? batch.payload.memory.data() : nullptr};
}

}  // namespace

Held::Held(const Surroundings& around, std::unique_ptr<bw_batch> batch)
    : around_(&around), batch_(std::move(batch)), seen_(holding_of(*batch_)) {
  around.onlooker.taken(seen_);
}

/// A destructor may not throw: the run fails a moment later.
Held::~Held() {
  if (!batch_) return;
  try {
    give_back(false);
  } catch (const Violation& found) {
    around_->world.fail_later(found.what());
  }
}

void Held::done() const {
  around_->onlooker.completed(seen_);
  batch_->subscription->leases().mark_done(batch_->lease);
  batch_->session->tell(*batch_->subscription);
}

void Held::release() {
  if (batch_->subscription->is_queue()) around_->onlooker.completed(seen_);
  give_back(false);
}

void Held::give_back_undone() { give_back(true); }

void Held::give_back(bool undone) {
  const std::unique_ptr<bw_batch> gone = std::move(batch_);
  around_->onlooker.let_go(seen_);
  gone->stay.reset();
  Leases& leases = gone->subscription->leases();
  undone ? leases.give_back_undone(gone->lease) : leases.give_back(gone->lease);
  gone->session->tell(*gone->subscription);
}

Course::Course(const Surroundings& around, const Grant& grant, std::uint32_t first)
    : around_(around),
      world_(grant.world),
      count_(grant.batches_per_step),
      first_(first),
      epoch_(grant.first.epoch),
      taken_(grant.first.step * grant.batches_per_step) {}

void Course::check(bool holds, const std::string& what, const bw_batch& batch) const {
  if (holds) return;
  around_.world.fail(fmt::format("{}: batch {} of epoch {} came, behind {} of epoch {}", what,
                                 batch.header.index, batch.header.epoch, taken_, epoch_));
}

void Course::next(const bw_batch& batch) {
  const bw_batch_header& header = batch.header;
  check(header.epoch == epoch_, "a batch of another epoch", batch);
  if (header.rehearsal != 0) {
    around_.world.sometimes(Mark::batch_rehearsed);
    check(!begun_, "a rehearsal within the epoch", batch);
    return check(rehearsed_.insert(header.index).second, "a second rehearsal", batch);
  }
  begun_ = true;
  const std::uint64_t due = taken_ / count_ * world_ + first_ + taken_ % count_;
  check(header.index == due, "a batch out of turn", batch);
  check(!data_ || *data_ == header.fingerprint.data, "a batch of other data", batch);
  data_ = header.fingerprint.data;
  ++taken_;
  check(batch.position.epoch == epoch_ && batch.position.step == taken_ / count_,
        "a wrong place to resume", batch);
}

void Course::end(const EpochEnded& ended) {
  const std::uint64_t steps = data_ ? around_.onlooker.steps(*data_, epoch_) : ended.steps;
  if (ended.epoch != epoch_ || ended.steps != steps || taken_ != steps * count_) {
    around_.world.fail(fmt::format("epoch {} ended after {} steps, and {} batches of epoch {}",
                                   ended.epoch, ended.steps, taken_, epoch_));
  }
  ++epoch_;
  taken_ = 0;
  data_.reset();
  begun_ = true;
}

Client::Client(const Surroundings& around, Process& process, const ProgramTerms& terms)
    : around_(around), process_(process), terms_(terms) {
  connect();
}

void Client::connect() {
  ConnectSettings settings;
  settings.program = process_.name();
  settings.always_inline = terms_.asks_for_messages;
  const char* endpoint =
      process_.is_remote() ? "tcp://192.0.2.1:7777" : "ipc:///simulated/batchwright.sock";
  while (true) {
    auto made =
        Session::connect(endpoint, settings,
                         std::make_unique<VirtualTransport>(around_.network, around_.onlooker,
                                                            process_.shared_from_this()));
    if (made) {
      session_ = std::move(*made);
      return;
    }
    around_.world.note(process_.name() + ": " + made.error().message);
    process_.sleep(around_.world.dice.time(milliseconds(1), milliseconds(200)));
  }
}

wire::SubscribeT Client::request(const std::optional<Saved>& from) const {
  wire::SubscribeT request;
  request.feed = "train";
  request.mode = terms_.mode;
  request.rank = terms_.rank;
  request.ranks = terms_.ranks;
  request.ranks_here = terms_.ranks_here;
  request.window = terms_.window;
  if (terms_.mode == wire::Mode::queue) {
    request.until_epoch = terms_.epochs;
    return request;
  }
  request.worst_first = terms_.worst_first;
  request.epochs = terms_.epochs;
  if (!from) return request;
  request.epoch = from->epoch;
  request.step = from->step;
  if (request.epochs != 0) request.epochs -= from->epoch;
  request.expects_fingerprint = true;
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(from->plan));
  request.terms = from->terms;
  return request;
}

/// A slot that is still another's, such as one that died a moment ago, comes free: it tries again,
/// as its launcher would start it again.
std::unique_ptr<Client::Reading> Client::subscribe(const wire::SubscribeT& request) {
  while (true) {
    auto made = session_->subscribe(wire::SubscribeT(request));
    if (made) {
      const Grant& grant = (*made)->grant();
      const bool moved = grant.first.epoch != request.epoch || grant.first.step != request.step;
      if (terms_.mode != wire::Mode::queue && !terms_.live && moved) {
        around_.world.fail("a subscription was granted from another place on");
      }
      return std::make_unique<Reading>(*this, std::move(*made));
    }
    around_.world.note(process_.name() + ": " + made.error().message);
    const ErrorCode code = made.error().code;
    if (code != ErrorCode::timed_out && code != ErrorCode::does_not_fit) {
      if (terms_.live) process_.crash();
      around_.world.fail(process_.name() + " cannot subscribe: " + made.error().message);
    }
    process_.sleep(around_.world.dice.time(milliseconds(50), milliseconds(500)));
  }
}

void Client::work() {
  if (terms_.work > microseconds(10)) {
    process_.sleep(around_.world.dice.time(microseconds(10), terms_.work));
  }
}

void Client::announce(std::uint64_t version) {
  while (true) {
    wire::AdvanceT what;
    what.feed = "train";
    what.version = version;
    const auto said = session_->advance(std::move(what));
    if (said && said->code == 0) return;
    const auto code = said ? static_cast<ErrorCode>(said->code) : said.error().code;
    if (code != ErrorCode::timed_out && code != ErrorCode::busy) {
      around_.world.fail(process_.name() + " cannot announce a version: " +
                         (said ? said->text : said.error().message));
    }
    process_.sleep(around_.world.dice.time(milliseconds(10), milliseconds(200)));
  }
}

void Client::end_feed() {
  wire::EndFeedT what;
  what.feed = "train";
  const auto said = session_->end_feed(std::move(what), true);
  if (said) return;
  const ErrorCode code = said.error().code;
  if (code == ErrorCode::timed_out || code == ErrorCode::busy) return;
  around_.world.fail(process_.name() + " cannot end the feed: " + said.error().message);
}

std::optional<std::uint64_t> Client::version() {
  Dice& dice = around_.world.dice;
  wire::AwaitVersionT what;
  what.feed = "train";
  what.above = dice.percent(80) ? 0 : dice.below(20);
  const auto said = session_->await_version(
      std::move(what), session_->after(milliseconds(dice.percent(50) ? 0 : dice.below(500))));
  const auto code = said ? static_cast<ErrorCode>(said->code) : said.error().code;
  if (said && (said->code == 0 || code == ErrorCode::timed_out)) {
    if (said->code == 0) around_.world.sometimes(Mark::version_awaited);
    return said->version;
  }
  if (code != ErrorCode::timed_out && code != ErrorCode::busy) {
    around_.world.fail(process_.name() + " cannot ask for the version: " +
                       (said ? said->text : said.error().message));
  }
  process_.sleep(dice.time(milliseconds(10), milliseconds(200)));
  return {};
}

Client::Reading::Reading(Client& client, std::shared_ptr<ClientSubscription> inner)
    : client_(client), inner_(std::move(inner)), over_(inner_->is_over()) {
  if (inner_->is_queue()) return;
  const Grant& grant = inner_->grant();
  const bool is_rank = client_.terms_.mode == wire::Mode::sharded;
  course_.emplace(client_.around_, grant, is_rank ? grant.rank * grant.batches_per_step : 0);
}

std::chrono::milliseconds Client::Reading::limit() {
  Dice& dice = client_.around_.world.dice;
  if (client_.terms_.polls) return milliseconds(dice.below(3));
  return dice.percent(90) ? milliseconds(10'000) : milliseconds(dice.between(1, 500));
}

Client::Reading::Event Client::Reading::next() {
  Session& session = *client_.session_;
  World& world = client_.around_.world;
  auto event = session.next(inner_, session.after(limit()));
  if (!event) {
    if (event.error().code != ErrorCode::timed_out) {
      if (client_.terms_
              .live) {  // another daemon knows nothing of its steps, or keeps them no more
        world.note(client_.process_.name() + ": " + event.error().message);
        world.sometimes(Mark::trainer_refused);
        client_.process_.crash();
      }
      world.fail(client_.process_.name() + ": " + event.error().message);
    }
    if (client_.terms_.polls) {
      client_.process_.sleep(world.dice.time(microseconds(100), milliseconds(20)));
    } else if (!std::exchange(told_, true)) {
      world.note(client_.process_.name() + ": " + event.error().message);
    }
    return {};
  }
  told_ = false;
  if (event->batch) {
    compare(*event->batch);
    if (course_) course_->next(*event->batch);
    const bool is_counted = course_ && course_->epoch() && !client_.terms_.live;
    if (is_counted && inner_->expected().steps() != course_->steps()) {
      world.fail("the client is wrong about the number of an epoch's steps");
    }
    return {std::optional<Held>(std::in_place, client_.around_, std::move(event->batch)), {}};
  }
  if (!event->ended) {
    over_ = true;
    return {};
  }
  if (course_) course_->end(*event->ended);
  over_ = event->ended->last;
  return {{}, event->ended};
}

void Client::Reading::foresee() {
  Session& session = *client_.session_;
  World& world = client_.around_.world;
  const std::uint32_t count = world.dice.between(1, 12);
  auto told = session.upcoming(*inner_, count, session.after(limit()));
  if (!told) {
    if (told.error().code == ErrorCode::timed_out) return;
    world.fail(client_.process_.name() + ": " + told.error().message);
  }
  foretold_.assign(told->batches.begin(), told->batches.end());
  const bool all_certain = told->certain == told->batches.size();
  if (foretold_.size() > count || !all_certain) world.fail("more was foretold than can be known");
  const std::optional<std::uint64_t> epoch = course_->epoch();
  if (epoch && foretold_.size() < std::min<std::uint64_t>(count, course_->left())) {
    world.fail(fmt::format("{} batches of {} were foretold, and {} are left of the epoch",
                           foretold_.size(), count, course_->left()));
  }
  if (client_.terms_.follows) {
    std::erase_if(foretold_, [&](const auto& each) { return each.epoch() != epoch; });
  }
  const Listener* const daemon = client_.around_.network.daemon();
  foretold_by_ = daemon != nullptr ? daemon->number() : 0;
}

void Client::Reading::compare(const bw_batch& batch) {
  if (foretold_.empty()) return;
  const wire::UpcomingBatch due = foretold_.front();
  foretold_.pop_front();
  const bw_batch_header& header = batch.header;
  World& world = client_.around_.world;
  const bool same_place =
      header.epoch == due.epoch() && header.step == due.step() && header.index == due.index();
  const bool same_shape = header.frames == due.frames() && header.sequences == due.rows() &&
                          header.batch_length == due.length();
  if (!same_place || !same_shape || (header.rehearsal != 0) != due.rehearsal()) {
    world.fail(fmt::format("batch {} of epoch {} came, and batch {} of epoch {} was foretold",
                           header.index, header.epoch, due.index(), due.epoch()));
  }
  const Listener* const daemon = client_.around_.network.daemon();
  const bool is_same = daemon != nullptr && daemon->number() == foretold_by_;
  world.sometimes(is_same ? Mark::foretold : Mark::foretold_by_another);
}

Saved Client::Reading::position_behind(const Held& batch) const {
  const Position& position = batch->position;
  return {position.plan, position.epoch, position.step, inner_->expected().terms()};
}

}  // namespace batchwright::simulation
