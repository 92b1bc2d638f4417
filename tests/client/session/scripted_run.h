#pragma once

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/library/session/session.h"
#include "tests/client/link/scripted_transport.h"
#include "tests/client/memory/sealed_arena.h"

namespace batchwright::test {

/// A session with a daemon that answers what it is asked, 1 ms later each time, and sends batches
/// when the test says so.
struct ScriptedRun {
  explicit ScriptedRun(std::chrono::milliseconds reconnect = std::chrono::seconds(60),
                       Abilities its_abilities = {})
      : abilities(its_abilities) {
    auto transport = std::make_unique<ScriptedTransport>();
    world = transport.get();
    world->arena = arena.mapping();
    world->hear = [this](const ControlMessage& message) { answer(message); };
    ConnectSettings settings;
    settings.limit = std::chrono::seconds(10);
    settings.reconnect = reconnect;
    auto made =
        Session::connect("ipc:///simulated/batchwright.sock", settings, std::move(transport));
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    session = std::move(*made);
  }

  void answer(const ControlMessage& message) {
    if (message.as<wire::Hello>() != nullptr) {
      world->after(std::chrono::milliseconds(1), [this] {
        wire::WelcomeT welcome;
        welcome.protocol = kProtocolVersion;
        welcome.arena_socket = "/simulated/batchwright.sock.arena";
        welcome.abilities = abilities.bits();
        world->say(std::move(welcome));
      });
    }
    if (const auto* request = message.as<wire::Subscribe>()) {
      subscribed.emplace_back();
      request->UnPackTo(&subscribed.back());
      world->after(std::chrono::milliseconds(1), [this, asked = subscribed.back()] {
        wire::SubscribedT granted;
        granted.subscription = asked.subscription;
        granted.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
        granted.epoch = asked.epoch;
        granted.step = asked.step;
        granted.steps = 100;
        granted.world = granted.batches_per_step = batches_per_step;
        granted.arena = 1;
        granted.window = 4;
        world->say(std::move(granted));
      });
    }
    if (const auto* release = message.as<wire::Release>()) {
      releases.push_back(from_wire(release->leases()));
    }
    if (const auto* question = message.as<wire::ListUpcoming>()) {
      questions.push_back(question->question());
      counts.push_back(question->count());
      if (!answers_upcoming) return;
      if (in_place_of_answer) {
        return world->after(std::chrono::milliseconds(1),
                            std::exchange(in_place_of_answer, nullptr));
      }
      wire::UpcomingT answer;
      answer.subscription = question->subscription();
      answer.question = question->question();
      for (std::uint64_t i = 2; i < 2 + question->count(); ++i) {
        answer.batches.emplace_back(0, i, i, 7, 2, 4, false);
      }
      world->after(std::chrono::milliseconds(1), [this, answer] {
        world->say(wire::UpcomingT(answer));
        if (behind_answer) std::exchange(behind_answer, nullptr)();
      });
    }
    if (const auto* question = message.as<wire::Ask>()) holds.push_back(question->holds());
    if (message.as<wire::Bye>() != nullptr) ++byes;
  }

  std::shared_ptr<ClientSubscription> subscribe() {
    wire::SubscribeT request;
    request.feed = "train";
    auto made = session->subscribe(std::move(request));
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    return *made;
  }

  /// Says no, for whatever the code stands for.
  void refuse(std::uint32_t subscription, std::uint16_t code) const {
    wire::RefusedT refused;
    refused.subscription = subscription;
    refused.code = code;
    refused.message = "it is refused";
    world->say(std::move(refused));
  }

  /// Puts a batch into the slot of its number, and says where it lies.
  void deliver(const ClientSubscription& to, std::uint64_t step, bool may_join = false) {
    const std::array<std::uint64_t, 1> ordinals = {step};
    const std::array<std::string_view, 1> keys = {"one"};
    const std::array<std::uint32_t, 1> lengths = {1};
    BatchSpec spec;
    spec.feed = "train";
    spec.step = Step{step / batches_per_step};
    spec.world = batches_per_step;
    spec.index = BatchIndex{step};
    spec.fingerprint = {1, 2, 3};
    spec.ordinals = ordinals;
    spec.keys = keys;
    spec.lengths = lengths;
    std::vector<std::byte> bytes(kSlotBytes);
    const auto laid = lay_out_batch(spec, bytes);
    REQUIRE(laid);
    const std::size_t offset = step * kSlotBytes;
    arena.write(offset, std::span(bytes).subspan(laid->offset, laid->size));
    wire::DeliveryT ticket;
    ticket.subscription = to.number().value;
    ticket.lease = 100 + step;
    ticket.arena = 1;
    ticket.offset = offset;
    ticket.size = laid->size;
    ticket.step = step / batches_per_step;
    ticket.index = step;
    ticket.may_join = may_join;
    world->say(std::move(ticket));
  }

  /// The next event, which must be a batch.
  std::unique_ptr<bw_batch> next(const std::shared_ptr<ClientSubscription>& from,
                                 std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    auto event = session->next(from, session->after(limit));
    REQUIRE_MESSAGE(event, (event ? "" : event.error().message));
    REQUIRE(event->batch);
    return std::move(event->batch);
  }
  void release(std::unique_ptr<bw_batch> batch) const {
    batch->subscription->leases().give_back(batch->lease);
    session->tell(*batch->subscription);
  }

  static constexpr std::size_t kSlotBytes = 4096;

  Abilities abilities;
  bool answers_upcoming = true;
  std::function<void()> in_place_of_answer;  // to the next question
  std::function<void()> behind_answer;       ///< Once, before the session has taken it in.
  std::vector<std::uint32_t> questions;
  std::vector<std::uint32_t> counts;  ///< That they ask for.
  std::uint32_t batches_per_step = 1;
  SealedArena arena;
  ScriptedTransport* world = nullptr;
  std::shared_ptr<Session> session;
  std::vector<wire::SubscribeT> subscribed;
  std::vector<std::vector<LeaseNumber>> releases;  ///< A message each.
  std::vector<std::uint32_t> holds;                ///< What each Ask says.
  std::size_t byes = 0;
};

}  // namespace batchwright::test
