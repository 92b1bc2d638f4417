#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/library/session/session.h"
#include "tests/simulation/clients/programs.h"

namespace batchwright::simulation {

/// A batch that a program holds, until it gives it back.
class Held {
 public:
  Held(const Surroundings& around, std::unique_ptr<bw_batch> batch);
  Held(Held&&) = default;
  /// The other way round, too: each goes back in its turn.
  Held& operator=(Held&& other) noexcept {
    std::swap(around_, other.around_);
    std::swap(batch_, other.batch_);
    std::swap(seen_, other.seen_);
    return *this;
  }
  ~Held();

  const bw_batch& operator*() const { return *batch_; }
  const bw_batch* operator->() const { return batch_.get(); }
  // As the C ABI has them: bw_batch_done, bw_release, bw_return.
  void done() const;
  void release();
  void give_back_undone();

 private:
  void give_back(bool undone);

  const Surroundings* around_;
  std::unique_ptr<bw_batch> batch_;
  Holding seen_;
};

/// The order in which a replica or a rank has to get its batches, by arithmetic of its own.
class Course {
 public:
  Course(const Surroundings& around, const Grant& grant, std::uint32_t first);

  void next(const bw_batch& batch);
  void end(const EpochEnded& ended);
  /// The epoch of which a batch was taken; empty: none was since the last one's end.
  std::optional<std::uint64_t> epoch() const {
    return data_ ? std::optional(epoch_) : std::nullopt;
  }
  /// Of that epoch.
  std::uint64_t steps() const { return around_.onlooker.steps(*data_, epoch_); }
  /// How many batches of it are left.
  std::uint64_t left() const { return steps() * count_ - taken_; }

 private:
  void check(bool holds, const std::string& what, const bw_batch& batch) const;

  const Surroundings& around_;
  const std::uint64_t world_;
  const std::uint64_t count_;
  const std::uint64_t first_;
  std::uint64_t epoch_;
  std::uint64_t taken_;                ///< Batches of the epoch.
  std::optional<std::uint64_t> data_;  ///< Of the epoch, once a batch was seen.
  std::set<std::uint64_t> rehearsed_;
  bool begun_ = false;
};

/// A program's connection: it is made again and again until a daemon is there.
class Client {
 public:
  Client(const Surroundings& around, Process& process, const ProgramTerms& terms);
  ~Client() { session_->close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// A subscription, until it goes.
  class Reading {
   public:
    Reading(Client& client, std::shared_ptr<ClientSubscription> inner);
    ~Reading() { client_.session_->unsubscribe(*inner_); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    /// A batch, an end, or neither: nothing came in time, or `over()`.
    struct Event {
      std::optional<Held> batch;
      std::optional<EpochEnded> ended;
    };
    Event next();
    /// Asks which batches come next: then these have to come, as they were foretold.
    void foresee();
    bool over() const { return over_; }
    /// What the latest daemon granted: with other settings it may be less than the first did.
    std::uint32_t window() const { return inner_->window(); }
    Saved position_behind(const Held& batch) const;

   private:
    std::chrono::milliseconds limit();
    void compare(const bw_batch& batch);

    Client& client_;
    const std::shared_ptr<ClientSubscription> inner_;
    std::optional<Course> course_;  ///< Empty in a queue, which has none.
    std::deque<wire::UpcomingBatch> foretold_;
    std::uint64_t foretold_by_ = 0;  ///< The daemon.
    bool over_ = false;
    bool told_ = false;  ///< That nothing comes.
  };

  std::unique_ptr<Reading> subscribe(const wire::SubscribeT& request);
  /// What `terms` ask for, from there on.
  wire::SubscribeT request(const std::optional<Saved>& from) const;
  void work();

  // Of a live feed. They wait until a daemon has answered.
  void announce(std::uint64_t version);
  void end_feed();
  /// The last that was announced; empty: the daemon did not say.
  std::optional<std::uint64_t> version();

 private:
  void connect();

  const Surroundings& around_;
  Process& process_;
  const ProgramTerms& terms_;
  std::shared_ptr<Session> session_;
};

}  // namespace batchwright::simulation
