#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/live/live_service.h"
#include "daemon/delivery/feed/live/producer_area.h"
#include "daemon/delivery/feed/live/spool/spool.h"
#include "tests/delivery/live/raw_producer.h"

namespace batchwright::test {

// Sessions of its clients.
inline constexpr SessionId kActor{1};
inline constexpr SessionId kOther{2};
inline constexpr SessionId kTrainer{3};
inline constexpr SessionId kNext{4};

/// A LiveService that is driven by requests alone, and its clock. A session has one producer, 1.
/// Where it has a spool, that is written before anything is sent; one desk at a time has it.
class VirtualLiveService {
 public:
  using Time = LiveService::Time;

  explicit VirtualLiveService(const FeedSettings& settings, std::uint64_t incarnation = 1)
      : spooled_(open_spool(settings, incarnation)),
        source_(std::make_shared<LiveSource>(settings.live->schema, Fingerprint{incarnation, 2, 3},
                                             settings.plan.world)),
        desk_(settings, spooled_ ? spooled_->feed.incarnation : incarnation, source_, now_,
              spooled_ ? &spooled_->feed : nullptr) {
    desk_.set_slot_bytes(std::size_t{1} << 24);
    collect();
  }

  void ask(SessionId session, LiveRequest request) {
    ClientInfo client;
    client.session = session;
    client.produces = true;
    client.program = "actor.py";
    client.pid = static_cast<std::uint32_t>(1000 + session.value);
    desk_.on(client, std::move(request), now_);
    collect();
  }
  void end_session(SessionId session) {
    desk_.session_ended(session, now_);
    collect();
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    desk_.time_passed(now_);
    collect();
  }
  void adjust(const LiveLimits& limits) {
    desk_.adjust(limits, now_);
    collect();
  }
  /// So many milliseconds after it began; the desk hears of the time with what comes next.
  void set_time(std::uint64_t ms) { now_ = began_ + std::chrono::milliseconds(ms); }

  /// Becomes a producer; empty when that is refused.
  std::optional<wire::ProducedT> produce(SessionId session, const std::string& name,
                                         const SharedBytes& area = {}) {
    ProduceAsked asked;
    asked.request.producer = 1;
    asked.request.feed = "live";
    asked.request.name = name;
    asked.area = area;
    ask(session, std::move(asked));
    return answer<wire::Produced>(session);
  }
  /// In a frame.
  void push(SessionId session, const std::vector<Offered>& sequences,
            std::int64_t timeout_ms = -1) {
    LaidOutPush laid = lay_out(sequences);
    push(session, std::move(laid.push), std::move(laid.bytes), timeout_ms);
  }
  void push(SessionId session, wire::PushT push, std::vector<std::byte> frame,
            std::int64_t timeout_ms = -1) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(frame));
    push.framed = true;
    push.timeout_ms = timeout_ms;
    ask(session, PushAsked{std::move(push), {*kept, kept}, join_});
  }
  /// Where the rows come from that pushes name from now on, or why there are none.
  void join(Result<std::shared_ptr<const Join>> join) { join_ = std::move(join); }
  void claim(SessionId session, std::uint32_t count, std::int64_t timeout_ms = -1) {
    wire::ClaimT claim;
    claim.producer = 1;
    claim.count = count;
    claim.timeout_ms = timeout_ms;
    ask(session, std::move(claim));
  }
  std::optional<wire::OutcomesT> outcomes(SessionId session) {
    wire::ListOutcomesT question;
    question.producer = 1;
    question.count = 1000;
    ask(session, std::move(question));
    return answer<wire::Outcomes>(session);
  }

  /// A trainer's loop waits for its next step.
  void take(SessionId trainer, std::uint64_t step) {
    desk_.take({trainer, {1}}, Step{step}, true, now_);
    desk_.keep_from(Step{step});
    collect();
  }
  void release(SessionId trainer, std::uint64_t before) {
    desk_.released({trainer, {1}}, Step{before}, now_);
    desk_.keep_from(Step{before});
    collect();
  }
  /// Steps from this one on are to be kept.
  void mark(SessionId trainer, std::uint64_t step) {
    wire::KeepFromT mark;
    mark.step = step;
    ask(trainer, std::move(mark));
  }
  void leave(SessionId trainer) {
    desk_.left({trainer, {1}}, now_);
    collect();
  }

  /// The oldest message of this kind that the session was sent; what came before it is dropped.
  template <class Table, class TableT = typename Table::NativeTableType>
  std::optional<TableT> answer(SessionId session) {
    auto& all = sent_[session];
    while (!all.empty()) {
      const ControlMessage message = std::move(all.front());
      all.pop_front();
      if (const Table* body = message.as<Table>()) {
        TableT table;
        body->UnPackTo(&table);
        return table;
      }
    }
    return {};
  }

  std::uint64_t first_step() const { return source_->first_kept(); }
  std::uint64_t steps() const { return source_->outline().steps(); }
  /// The numbers of a step's only batch, by producer.
  std::vector<std::pair<std::string, std::uint64_t>> rows(std::uint64_t step) const {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    if (const auto live = source_->live_rows(BatchIndex{step})) {
      for (std::size_t r = 0; r < live->numbers.size(); ++r) {
        all.emplace_back(live->names[live->producers[r]], live->numbers[r]);
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  /// Whether each row has the values that its number stands for; of one producer where it is named.
  bool has_its_values(std::uint64_t step, const std::string& producer = {}) const {
    std::vector<Row> rows;
    source_->rows(BatchIndex{step}, rows);
    const auto live = source_->live_rows(BatchIndex{step});
    const auto reader = source_->read(BatchIndex{step}, rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      RowBytes row;
      if (!reader->read(r, row)) return false;
      const std::span<const std::byte> x = row.fields.front().bytes;
      if (x.size() != 8 * std::size_t{rows[r].length}) return false;
      if (!producer.empty() && live->names[live->producers[r]] != producer) continue;
      for (std::size_t i = 0; i < 2 * std::size_t{rows[r].length}; ++i) {
        float found = 0;
        std::memcpy(&found, x.data() + i * sizeof found, sizeof found);
        if (found != x_value(live->numbers[r], i)) return false;
      }
    }
    return !rows.empty();
  }
  const LiveService& desk() const { return desk_; }
  const LiveSource& source() const { return *source_; }
  LiveStatus status() const { return desk_.status(now_, true); }

 private:
  static std::optional<Spool::Opened> open_spool(const FeedSettings& settings,
                                                 std::uint64_t incarnation) {
    if (settings.live->spool.empty()) return {};
    auto opened = Spool::open(settings, incarnation);
    REQUIRE_MESSAGE(opened, opened.error().message);
    return std::move(*opened);
  }
  void collect() {
    if (desk_.is_spooled()) {
      if (auto turn = desk_.take_turn()) {
        std::vector<Record> records;
        records.emplace_back(std::move(*turn));
        REQUIRE(spooled_->spool->write(records));
      }
    }
    for (LiveService::Message& message : desk_.take_messages()) {
      auto decoded = ControlMessage::decode(
          std::as_bytes(std::span(message.bytes.data(), message.bytes.size())));
      REQUIRE(decoded);
      sent_[message.to].push_back(std::move(*decoded));
    }
  }

  const Time began_{std::chrono::hours(1)};
  Time now_ = began_;
  std::optional<Spool::Opened> spooled_;  ///< Empty: there is no spool.
  Result<std::shared_ptr<const Join>> join_ = std::shared_ptr<const Join>();
  std::shared_ptr<LiveSource> source_;
  LiveService desk_;
  std::map<SessionId, std::deque<ControlMessage>> sent_;
};

/// An area as its producer has it: what the daemon reads of it may be written to.
class WrittenArea {
 public:
  explicit WrittenArea(std::shared_ptr<const ProducerArea> area) : area_(std::move(area)) {
    void* const start = ::mmap(nullptr, area_->bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED,
                               area_->descriptor(), 0);
    REQUIRE(start != MAP_FAILED);
    bytes_ = {static_cast<std::byte*>(start), area_->bytes().size()};
  }
  ~WrittenArea() { ::munmap(bytes_.data(), bytes_.size()); }
  WrittenArea(const WrittenArea&) = delete;
  WrittenArea& operator=(const WrittenArea&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  SharedBytes shared() const { return {area_->bytes(), area_}; }
  /// Writes them there, and offers them.
  void push(VirtualLiveService& desk, SessionId session,
            const std::vector<Offered>& sequences) const {
    LaidOutPush laid = lay_out(sequences);
    std::copy(laid.bytes.begin(), laid.bytes.end(), bytes_.begin());
    desk.ask(session, PushAsked{std::move(laid.push), {}});
  }

 private:
  std::shared_ptr<const ProducerArea> area_;
  std::span<std::byte> bytes_;
};

}  // namespace batchwright::test
