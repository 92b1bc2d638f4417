#include "tests/simulation/daemon/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/feed/feed_resources.h"
#include "daemon/delivery/server.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// As `Server` has them by default.
constexpr seconds kBindTime{10};
constexpr seconds kSilence{10};

}  // namespace

/// Its clients notice, and what it had for other threads is not done.
Daemon::~Daemon() {
  network_.end(*this);
  ++machine_.feeds_lost;
  if (feed_) feed_->die();
  for (const auto& [id, peer] : peers_) {
    if (!peer.arena) continue;
    world_.after(world_.dice.time(microseconds(20), milliseconds(2)), [line = peer.arena] {
      line->open = false;
      if (const auto owner = line->owner.lock()) owner->wake();
    });
  }
}

void Daemon::start() {
  network_.listen(*this);
  post(world_.dice.time(milliseconds(1), milliseconds(300)), [this] { open_feed(); });
  say_alive();
}

void Daemon::post(Duration delay, std::function<void()> work) {
  world_.after(delay, [weak = weak_from_this(), work = std::move(work)]() mutable {
    const auto self = weak.lock();
    if (!self) return;
    if (self->stopped_ != 0) return self->backlog_.push_back(std::move(work));
    work();
  });
}

void Daemon::stop_for(Duration time) {
  ++stopped_;
  world_.after(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || --self->stopped_ != 0) return;
    for (auto& work : std::exchange(self->backlog_, {})) self->post(Duration::zero(), work);
  });
}

bool Daemon::is_at_rest(std::uint64_t queue_epochs) const {
  if (!peers_.empty() || !feed_) return false;
  const FeedParts& parts = feed_->core().parts();
  if (parts.desk.is_open() && parts.desk.epoch().value < queue_epochs) return false;
  return parts.subscriptions.all().empty() && parts.scheduler.cache().held() == 0;
}

std::string Daemon::describe() const {
  std::string text =
      fmt::format("daemon {}: {} sessions{}\n", number_, peers_.size(), feed_ ? "" : ", no feed");
  if (!feed_) return text;
  const FeedParts& parts = feed_->core().parts();
  text += fmt::format("{} of {} slots are held\n", parts.scheduler.cache().held(),
                      parts.scheduler.cache().size());
  if (parts.desk.is_open()) {
    const WorkQueue& queue = parts.desk.queue();
    text += fmt::format("queue: epoch {}, {} done, {} out, {} undone\n", queue.epoch().value,
                        queue.done_count(), queue.out().size(), queue.undone().size());
  }
  if (parts.live) text += describe_live();
  for (const auto& [key, one] : parts.subscriptions.all()) {
    text += fmt::format("  {}: stage {}, epoch {}, step {}, {} of {} leases, blocked by {}{}{}\n",
                        one.client.program, static_cast<int>(one.stage), one.cursor.epoch().value,
                        one.cursor.step().value, one.leases.size(), one.terms.window,
                        static_cast<int>(one.blocked_by), one.asked ? ", waits" : "",
                        one.looks_on() ? ", looks on" : "");
  }
  return text;
}

void Daemon::open_feed() {
  if (feed_) return;
  auto opened = FeedHost::open(world_, *this, machine_, arena_);
  if (!opened) {
    if (!is_transient(opened.error().code)) world_.fail(opened.error().message);
    return post(world_.dice.time(milliseconds(100), milliseconds(800)), [this] { open_feed(); });
  }
  feed_ = std::move(*opened);
  world_.note("the feed is served");
  for (auto& pending : pending_.all_for(machine_.settings.name)) {
    world_.sometimes(Mark::guest_waited);
    subscribe(pending.client, std::move(pending.request), pending.said_so);
  }
}

bool Daemon::takes_over(ErrorCode why) {
  if (!is_transient(why)) return false;
  post(Duration::zero(), [this] {
    if (feed_ && feed_->core().parts().life.why()) put_away(*feed_->core().parts().life.why());
  });
  return true;
}

void Daemon::put_away(const Error& why) {
  world_.note("the feed is put away: " + why.message);
  if (feed_->core().parts().scheduler.cache().held() != 0) {
    world_.sometimes(Mark::batch_after_retirement);
  }
  ++machine_.feeds_lost;
  arena_ = *feed_->arena_number().next();
  feed_->tell(Retired{{ErrorCode::disconnected, why.message}});
  feed_->turn();
  retired_.push_back(std::move(feed_));
  post(world_.dice.time(milliseconds(50), milliseconds(500)), [this] { open_feed(); });
}

void Daemon::replace_feed() {
  post(Duration::zero(), [this] {
    if (!feed_ || feed_->core().parts().life.why()) return;
    world_.sometimes(Mark::feed_replaced);
    put_away({ErrorCode::disconnected, "it is replaced"});
  });
}

void Daemon::change_settings(const FeedAdjustments& settings) {
  post(Duration::zero(), [this, settings] {
    if (!feed_) return;
    if (!feed_->core().parts().subscriptions.all().empty()) {
      world_.sometimes(Mark::settings_changed);
    }
    feed_->tell(SettingsChanged{settings});
  });
}

Daemon::Peer* Daemon::find(const std::shared_ptr<Line>& line) {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const auto& entry) { return entry.second.line == line; });
  return found == peers_.end() ? nullptr : &found->second;
}

void Daemon::hear(const std::shared_ptr<Line>& line, const std::vector<std::byte>& bytes,
                  const std::vector<std::byte>& frame) {
  const auto message = ControlMessage::decode(bytes);
  if (!message) world_.fail("a client sent what is no message: " + message.error().message);
  if (world_.tells_all() && message->kind() != wire::Body::Ask) {
    const auto owner = line->owner.lock();
    world_.note(fmt::format("{} from {}", wire::EnumNameBody(message->kind()),
                            owner ? owner->name() : "one that is gone"));
  }
  if (const auto* hello = message->as<wire::Hello>()) return on_hello(line, *hello);
  if (Peer* const peer = find(line)) return on_session_message(*peer, *message, frame);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
  refused.message = "no session: Hello comes first";
  const auto answer = encode(std::move(refused));
  const auto* data = reinterpret_cast<const std::byte*>(answer.data());
  network_.send_to_client(line, {{data, data + answer.size()}, {}, {}});
}

void Daemon::on_hello(const std::shared_ptr<Line>& line, const wire::Hello& hello) {
  if (const Peer* old = find(line)) close_session(old->session.id());
  for (auto& [id, peer] : peers_) {
    if (peer.session.client.token != hello.token()) continue;
    world_.sometimes(Mark::session_returned);
    peer.session.returning = true;
    close_session(SessionId(id));
    break;
  }
  const SessionId id{world_.dice.bits() | 1U};
  Peer newcomer;
  newcomer.session.client = {
      id, hello.token(),          hello.client() != nullptr ? hello.client()->str() : "",
      1,  hello.inline_batches(), Abilities(hello.abilities()) & kAbilities};
  newcomer.session.client.produces = hello.produces();
  newcomer.session.peer.remote = line->remote;
  newcomer.line = line;
  newcomer.heard = world_.now();
  Peer& peer = peers_[id] = std::move(newcomer);
  wire::WelcomeT answer;
  answer.protocol = kProtocolVersion;
  answer.version = "simulation";
  answer.session = id.value;
  if (!line->remote) answer.arena_socket = "/simulated/arena";
  answer.abilities = kAbilities.bits();
  if (feed_ && feed_->is_live()) {
    answer.feeds.push_back(std::make_unique<wire::FeedInfoT>(feed_->info()));
  }
  send_to_session(id, encode(std::move(answer)));
  if (peer.session.client.inline_batches) return;
  post(kBindTime, [this, id] {
    const auto found = peers_.find(id);
    if (found != peers_.end() && !found->second.session.bound) close_session(id);
  });
}

void Daemon::on_session_message(Peer& peer, const ControlMessage& message,
                                const std::vector<std::byte>& frame) {
  const SessionId id = peer.session.id();
  if (const auto* request = message.as<wire::Subscribe>()) {
    subscribe(peer, *request);
  } else if (const auto* release = message.as<wire::Release>()) {
    on_release(peer, *release);
  } else if (const auto* end = message.as<wire::Unsubscribe>()) {
    const SubscriptionKey key{id, SubscriptionNumber{end->subscription()}};
    if (feed_) feed_->tell(Unsubscribed{key});
    pending_.remove(key);
  } else if (const auto* question = message.as<wire::Ask>()) {
    on_ask(peer, *question);
  } else if (const auto* wanted = message.as<wire::ListUpcoming>()) {
    on_list_upcoming(id, *wanted);
  } else if (message.as<wire::Bye>() != nullptr) {
    peer.session.leaving = true;
    close_session(id);
  } else if (!machine_.settings.live || !on_live_message(peer, message, frame)) {
    world_.fail("a message that a client does not send");
  }
}

void Daemon::on_release(const Peer& peer, const wire::Release& release) {
  const SubscriptionKey key{peer.session.id(), SubscriptionNumber{release.subscription()}};
  if (peer.session.lost) world_.sometimes(Mark::last_words);
  if (pending_.find(key) != nullptr) return pending_.release(key, from_wire(release.leases()));
  if (!feed_) return;
  feed_->tell(Released{key, from_wire(release.leases()), release.undone(), release.keeps(),
                       microseconds(release.waited_us())});
}

void Daemon::on_ask(const Peer& peer, const wire::Ask& question) {
  const SubscriptionKey key{peer.session.id(), SubscriptionNumber{question.subscription()}};
  if (pending_.find(key) != nullptr) return pending_.note_question(key);
  if (!feed_) return;
  if (question.quiet()) return feed_->tell(ProgramWaits{key, question.holds()});
  world_.sometimes(Mark::reason_told);
  feed_->tell(ReasonAsked{key, question.holds(), {}});
}

void Daemon::on_list_upcoming(SessionId id, const wire::ListUpcoming& question) {
  const SubscriptionKey key{id, SubscriptionNumber{question.subscription()}};
  if (feed_ && pending_.find(key) == nullptr) {
    return feed_->tell(UpcomingAsked{key, question.question(), question.count()});
  }
  wire::UpcomingT nothing;
  nothing.subscription = question.subscription();
  nothing.question = question.question();
  send_to_session(id, encode(std::move(nothing)));
}

void Daemon::subscribe(const Peer& peer, const wire::Subscribe& request) {
  const SessionId id = peer.session.id();
  const ClientInfo client = peer.session.client;
  if (!peer.session.is_reachable()) {
    return refuse(id, {ErrorCode::invalid_argument, "connect to the arena socket first"},
                  request.subscription());
  }
  if (!feed_ || feed_->core().parts().life.why()) {
    const auto in = pending_.let_in(client, request, world_.now());
    if (!in) return refuse(id, in.error(), request.subscription());
    wire::WaitingT answer;
    answer.subscription = request.subscription();
    answer.reason = "its feed is absent";
    return send_to_session(id, encode(std::move(answer)));
  }
  wire::SubscribeT unpacked;
  request.UnPackTo(&unpacked);
  subscribe(client, std::move(unpacked), false);
}

void Daemon::subscribe(const ClientInfo& client, wire::SubscribeT request, bool said_so) {
  const SubscriptionKey key{client.session, SubscriptionNumber{request.subscription}};
  if (!request.held.empty()) world_.sometimes(Mark::claimed_again);
  const auto can = feed_->core().check_subscribe(client, request);
  if (!can) return refuse(client.session, can.error(), request.subscription);
  feed_->tell(SubscribeRequested{client, std::move(request)});
  if (said_so) feed_->tell(ProgramWaits{key, 0});
}

bool Daemon::bind(const std::shared_ptr<ArenaLine>& line) {
  const auto found = peers_.find(line->session);
  if (found == peers_.end() || found->second.session.bound) return false;
  found->second.session.bound = true;
  found->second.arena = line;
  return true;
}

std::optional<ArenaFile> Daemon::find_arena(SessionId session, ArenaNumber number) {
  if (number.is_area()) return find_area(session, number);
  const Arena* arena = feed_ ? feed_->find_arena(number) : nullptr;
  for (auto feed = retired_.begin(); arena == nullptr && feed != retired_.end(); ++feed) {
    arena = (*feed)->find_arena(number);
  }
  if (arena == nullptr) return {};
  return ArenaFile{arena->descriptor(), arena->bytes()};
}

void Daemon::on_lost(SessionId id) {
  if (feed_) feed_->tell(ArenaReleased{id});
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  found->second.session.lost = true;
  const auto keys =
      feed_ ? feed_->core().parts().subscriptions.keys_of(id) : std::vector<SubscriptionKey>();
  const bool in_queue = std::any_of(keys.begin(), keys.end(), [this](const auto& key) {
    return feed_->core().parts().subscriptions.at(key).in_queue();
  });
  if (!in_queue) return close_session(id);
  feed_->tell(ProcessExited{id});
  post(Server::kLastWords, [this, id] { close_session(id); });
}

void Daemon::close_session(SessionId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const Peer gone = std::move(found->second);
  peers_.erase(found);
  std::size_t held = 0;
  const bool produces = feed_ && feed_->forget_producers(id);
  if (produces || (feed_ && !feed_->core().parts().subscriptions.keys_of(id).empty())) {
    const SessionEnd how = gone.session.ending();
    if (how.may_return) world_.sometimes(Mark::kept_for_absent);
    feed_->tell(SessionEnded{id, how});
    held = feed_->core().parts().subscriptions.orphaned().slots_of(id);
  }
  if (held != 0) world_.sometimes(Mark::slots_orphaned);
  pending_.remove_session(id);
  if (!gone.arena) return;
  world_.after(world_.dice.time(microseconds(10), milliseconds(1)), [line = gone.arena] {
    line->open = false;
    if (const auto owner = line->owner.lock()) owner->wake();
  });
}

void Daemon::send(Peer& peer, Message message) {
  if (world_.tells_all()) {
    const wire::Body kind = ControlMessage::decode(message.bytes)->kind();
    const bool is_idle = kind == wire::Body::Alive || kind == wire::Body::Waiting;
    const std::string& program = peer.session.client.program;
    if (!is_idle) world_.note(fmt::format("{} to {}", wire::EnumNameBody(kind), program));
  }
  if (network_.send_to_client(peer.line, std::move(message))) return;
  post(Duration::zero(), [this, id = peer.session.id()] { close_session(id); });
}

void Daemon::send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const auto* data = reinterpret_cast<const std::byte*>(message.data());
  send(found->second, {{data, data + message.size()}, {}, {}});
}

void Daemon::send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket,
                        std::function<std::vector<std::byte>()> batch, std::function<void()> sent) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return post(Duration::zero(), std::move(sent));
  const auto* data = reinterpret_cast<const std::byte*>(ticket.data());
  send(found->second, {{data, data + ticket.size()}, std::move(batch), std::move(sent)});
}

void Daemon::refuse(SessionId id, const Error& error, std::uint32_t subscription) {
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = subscription;
  send_to_session(id, encode(std::move(refused)));
}

/// Each second. A remote client of which nothing was heard for too long is lost, and its connection
/// ends.
void Daemon::say_alive() {
  std::vector<SessionId> lost;
  for (auto& [id, peer] : peers_) {
    if (!peer.session.client.inline_batches) continue;
    const auto owner = peer.line->owner.lock();
    const bool answers = owner && !owner->is_stopped() && peer.line->stalls_until <= world_.now();
    if (answers) peer.heard = world_.now();
    if (world_.now() - peer.heard >= kSilence) {
      lost.push_back(id);
    } else {
      send_to_session(id, encode(wire::AliveT{}));
    }
  }
  for (const SessionId id : lost) {
    const auto line = peers_.at(id).line;
    close_session(id);
    network_.cut(line);
  }
  post(Server::kAlive, [this] { say_alive(); });
}

}  // namespace batchwright::simulation
