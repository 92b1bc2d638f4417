// What the fake daemon answers.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/client/fake/fake_sockets.h"

namespace batchwright::test {
namespace {

/// Longer than a client looks for what bars it from an endpoint.
constexpr std::chrono::milliseconds kPause{300};

wire::WelcomeT welcome_of(const ThreadPolicy& manners) {
  wire::WelcomeT welcome;
  welcome.protocol = manners.protocol;
  welcome.version = "fake";
  welcome.abilities = manners.abilities.bits();
  if (!manners.absent.empty()) {
    auto absent = std::make_unique<wire::AbsentFeedT>();
    absent->name = manners.absent;
    absent->why = "its disk is away";
    welcome.absent.push_back(std::move(absent));
  }
  auto feed = std::make_unique<wire::FeedInfoT>();
  feed->name = "train";
  feed->world = manners.world;
  feed->sequences = 7;
  auto features = std::make_unique<wire::FieldInfoT>();
  features->name = manners.field;
  features->dtype = DType::float32;
  features->shape = {2};
  auto label = std::make_unique<wire::FieldInfoT>();
  label->name = "label";
  label->kind = FieldKind::scalar;
  label->dtype = DType::int32;
  label->categories = {"yes", "no"};
  feed->fields.push_back(std::move(features));
  feed->fields.push_back(std::move(label));
  welcome.feeds.push_back(std::move(feed));
  return welcome;
}

}  // namespace

wire::DeliveryT FakeDaemon::lay_out(std::uint64_t epoch, std::uint64_t step, std::uint64_t index) {
  const FieldSpec features{manners_.field, FieldKind::primary, DType::float32, {2}, {}};
  const FieldSpec label{"label", FieldKind::scalar, DType::int32, {}, {"yes", "no"}};
  const std::vector<std::uint64_t> ordinals = {index * 2, index * 2 + 1};
  const std::vector<std::string_view> keys = {"one", "another"};
  const std::vector<std::uint32_t> lengths = {3, 2};
  BatchSpec spec;
  spec.feed = manners_.feed;
  spec.epoch = Epoch{epoch};
  spec.step = Step{step};
  spec.index = BatchIndex{index};
  spec.world = manners_.world;
  spec.fingerprint = from_wire(plan_of(epoch));
  spec.batch_length = 3;
  spec.ordinals = ordinals;
  spec.keys = keys;
  spec.lengths = lengths;
  spec.batch_frames = 5;
  spec.step_sequences = 2 * manners_.world;
  spec.step_frames = std::uint64_t{5} * manners_.world;
  spec.tensors = {{&features, {2, 3, 2}, {}}, {&label, {2}, {}}};
  const std::size_t slot = slots_used_++ % kSlots;
  const auto laid = lay_out_batch(spec, {memory_ + slot * kSlotBytes, kSlotBytes});
  require(laid.has_value());
  auto* floats = reinterpret_cast<float*>(laid->payloads[0].data());
  for (std::size_t i = 0; i < 12; ++i) floats[i] = value(index, i / 6, i / 2 % 3, i % 2);
  const std::array<std::int32_t, 2> labels = {0, 1};
  std::memcpy(laid->payloads[1].data(), labels.data(), sizeof labels);
  wire::DeliveryT ticket;
  ticket.lease = 100 + slots_used_;
  ticket.arena = 1;
  ticket.slot = static_cast<std::uint32_t>(slot);
  ticket.offset = slot * kSlotBytes + laid->offset;
  ticket.size = laid->size;
  ticket.epoch = epoch;
  ticket.step = step;
  ticket.index = index;
  ticket.may_join = manners_.may_join;
  return ticket;
}

std::uint64_t FakeDaemon::deliver(std::uint32_t subscription, std::uint64_t epoch,
                                  std::uint64_t step, std::uint64_t index) {
  wire::DeliveryT ticket = lay_out(epoch, step, index);
  ticket.subscription = subscription;
  const std::uint64_t lease = ticket.lease;
  deliver(std::move(ticket));
  return lease;
}

void FakeDaemon::deliver(wire::DeliveryT ticket) {
  std::vector<std::byte> batch;
  if (inline_) {
    batch.assign(memory_ + ticket.offset, memory_ + ticket.offset + ticket.size);
    ticket.arena = 0;
    ticket.offset = 0;
  }
  send_bytes(encode(std::move(ticket)), std::move(batch));
}

void FakeDaemon::end_epoch(std::uint32_t subscription, std::uint64_t epoch, bool last) {
  wire::EpochEndT end;
  end.subscription = subscription;
  end.epoch = epoch;
  end.steps = steps_of(epoch);
  end.last = last;
  send(std::move(end));
}

std::uint64_t FakeDaemon::steps_of(std::uint64_t epoch) const {
  const bool grown = manners_.grows_at_epoch != 0 && epoch >= manners_.grows_at_epoch;
  return manners_.steps + (grown ? 1 : 0);
}

wire::Fingerprint FakeDaemon::plan_of(std::uint64_t epoch) const {
  return {manners_.data + (steps_of(epoch) != manners_.steps ? 100 : 0), manners_.settings, 3};
}

void FakeDaemon::on_frame(Sockets& sockets, std::span<const std::byte> frame) {
  const auto message = ControlMessage::decode(frame);
  require(message.has_value());
  note(*message);
  if (const auto* hello = message->as<wire::Hello>()) {
    on_hello(sockets, *hello);
  } else if (const auto* request = message->as<wire::Subscribe>()) {
    on_subscribe(sockets, *request);
  } else if (const auto* release = message->as<wire::Release>()) {
    on_release(*release);
  } else if (const auto* ask = message->as<wire::Ask>();
             ask != nullptr && manners_.explains && !ask->quiet()) {
    wire::WaitingT waiting;
    waiting.subscription = ask->subscription();
    waiting.reason = "a slot: all are held by trainer 7";
    sockets.say(std::move(waiting));
  }
}

void FakeDaemon::note(const ControlMessage& message) {
  const std::lock_guard lock(mutex_);
  if (const auto* hello = message.as<wire::Hello>()) {
    heard_.client = hello->client()->str();
    hello->UnPackTo(&heard_.hellos.emplace_back());
  } else if (const auto* request = message.as<wire::Subscribe>()) {
    request->UnPackTo(&heard_.subscribed.emplace_back());
  } else if (const auto* release = message.as<wire::Release>()) {
    auto& heard = release->undone() ? heard_.returned : heard_.released;
    heard.insert(heard.end(), release->leases()->begin(), release->leases()->end());
    ++heard_.releases;
    heard_.waited_us += release->waited_us();
  } else if (const auto* unsubscribe = message.as<wire::Unsubscribe>()) {
    heard_.unsubscribed.push_back(unsubscribe->subscription());
  } else if (const auto* ask = message.as<wire::Ask>()) {
    ++(ask->quiet() ? heard_.waits : heard_.asked);
  } else if (message.as<wire::Bye>() != nullptr) {
    ++heard_.byes;
  }
  changed_.notify_all();
}

void FakeDaemon::on_hello(Sockets& sockets, const wire::Hello& hello) {
  inline_ = hello.inline_batches();
  if (manners_.dies_at_hello) {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  } else if (manners_.protocol != kProtocolVersion) {
    sockets.refuse(ErrorCode::unsupported_version, "client 1, daemon 2", 0);
    sockets.say(wire::ByeT{});
  } else if (manners_.answers_hello) {
    wire::WelcomeT welcome = welcome_of(manners_);
    welcome.session = session_;
    if (!hello.inline_batches()) welcome.arena_socket = (folder_ / "s.arena").string();
    sockets.say(std::move(welcome));
  }
}

void FakeDaemon::on_subscribe(Sockets& sockets, const wire::Subscribe& request) {
  if (!manners_.answers_subscribe) return;
  if (request.feed()->string_view() != "train") {
    return sockets.refuse(ErrorCode::not_found, "no such feed; there is: train",
                          request.subscription());
  }
  const wire::Fingerprint plan = plan_of(request.epoch());
  if (manners_.compares && request.expects_fingerprint() &&
      request.fingerprint()->data() != plan.data()) {
    return sockets.refuse(ErrorCode::fingerprint_mismatch, "data differs", request.subscription());
  }
  wire::SubscribedT answer;
  answer.subscription = request.subscription();
  answer.fingerprint = std::make_unique<wire::Fingerprint>(plan);
  answer.epoch = request.epoch();
  answer.step = request.step();
  answer.steps = steps_of(request.epoch());
  answer.world = manners_.world;
  answer.batches_per_step = manners_.world / request.ranks();
  answer.window = request.window();
  const bool is_second =
      request.subscription() >= 2 && manners_.second != ThreadPolicy::Second::same;
  answer.arena = is_second ? 2 : 1;
  answer.arena_bytes = kArenaBytes;
  answer.terms = manners_.terms;
  sockets.say(std::move(answer));
  if (!manners_.serves) return;
  Served& served = served_[request.subscription()];
  request.UnPackTo(&served.request);
  served.credit = request.window();
  served.epoch = request.epoch();
  served.step = request.step();
  serve(served);
}

void FakeDaemon::on_release(const wire::Release& release) {
  releases_ += release.leases()->size();
  if (manners_.dies_after != 0 && releases_ >= manners_.dies_after) {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    return;
  }
  const auto found = served_.find(release.subscription());
  if (found == served_.end()) return;
  found->second.credit += release.leases()->size();
  serve(found->second);
}

void FakeDaemon::serve(Served& served) {
  const wire::SubscribeT& request = served.request;
  const std::uint64_t share = manners_.world / request.ranks;
  while (!served.over) {
    if (served.step == steps_of(served.epoch)) {
      turn_epoch(served);
      continue;
    }
    if (served.credit == 0) return;
    --served.credit;
    const std::uint64_t index = served.step * manners_.world + request.rank * share + served.place;
    deliver(request.subscription, served.epoch, served.step, index);
    if (++served.place == share) served.place = 0, ++served.step;
  }
}

void FakeDaemon::turn_epoch(Served& served) {
  const wire::SubscribeT& request = served.request;
  served.over = request.epochs != 0 && served.epoch + 1 == request.epoch + request.epochs;
  end_epoch(request.subscription, served.epoch, served.over);
  ++served.epoch;
  served.step = 0;
  if (served.over) return;
  wire::EpochBeginT began;
  began.subscription = request.subscription;
  began.epoch = served.epoch;
  began.steps = steps_of(served.epoch);
  began.fingerprint = std::make_unique<wire::Fingerprint>(plan_of(served.epoch));
  send(std::move(began));
}

void FakeDaemon::answer_arena(Sockets& sockets, std::size_t connection) {
  const int fd = sockets.connections[connection];
  ArenaRequest request;
  if (recv(fd, &request, sizeof request, 0) != sizeof request) {
    ::close(fd);
    sockets.connections.erase(sockets.connections.begin() +
                              static_cast<std::ptrdiff_t>(connection));
    const std::lock_guard lock(mutex_);
    ++heard_.lost;
    return changed_.notify_all();
  }
  if (std::exchange(manners_.pauses, false)) std::this_thread::sleep_for(kPause);
  ArenaReply reply;
  reply.arena = request.arena;
  if (request.session != session_) reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
  if (request.arena == 2 && manners_.second == ThreadPolicy::Second::late && !was_late_) {
    was_late_ = true;
    return;
  }
  const bool too_large = request.arena == 2 && manners_.second == ThreadPolicy::Second::too_large;
  if (request.arena != 0) {
    reply.bytes = std::max<std::uint64_t>(manners_.arena_bytes, kArenaBytes);
    if (too_large) reply.bytes = std::uint64_t{1} << 47;
  }
  // A client that is gone is seen when the next request is read.
  static_cast<void>(send_with_descriptor(fd, std::as_bytes(std::span(&reply, 1)),
                                         request.arena == 0 ? -1
                                         : too_large        ? large_arena_
                                                            : arena_));
}

}  // namespace batchwright::test
