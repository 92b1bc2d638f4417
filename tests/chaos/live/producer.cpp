// A producer of a live feed that may be killed at any moment. What it offers and what was accepted
// is in its record; started again under its name, it goes on after that.
//
// Call: chaos_producer name=value ...; the names are those of Habits. Lines of the record:
//   begin PID INCARNATION NEXT          it has a session; NEXT is the number of its next sequence
//   offer ITEM INCARNATION LENGTH VERSION GROUP GROUP_SIZE   before it is pushed
//   took ITEM INCARNATION NUMBER        it was accepted
//   gone ITEM                           it was not, and is given up; or no one knows
//   abandon GROUP, back NUMBER          before the daemon is told
//   made                                all
//   outcomes INCARNATION STATES         of its numbers from 0 on, a digit each: once `audit` is
//   there totals INCARNATION NEXT UNKNOWN WAITING DELIVERED DONE DROPPED ABANDONED LOST

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <sstream>
#include <thread>

#include "tests/chaos/live/items.h"

namespace {

using namespace chaos;
using std::chrono::microseconds;

constexpr std::uint64_t kAuditLooks = 5'000;  ///< Milliseconds, about, until all must be settled.

struct Habits {
  explicit Habits(const Words& words)
      : name(words.text("name")),
        audit(words.text("audit")),
        quota(words.number("quota")),
        together(words.number("together")),
        longest(words.number("longest")),
        large(words.number("large")),
        claims(words.number("claims") != 0),
        groups(words.number("groups") != 0),
        singly(words.number("singly") != 0),
        in_place(words.number("in_place") != 0),
        fails(words.number("fails")),
        takes_back(words.number("takes_back")),
        area(words.number("area")),
        limit(static_cast<std::int64_t>(words.number("limit"))),
        work_us(words.number("work_us")) {}

  std::string name;
  std::string audit;       ///< A file: once it is there, what became of all is asked.
  std::uint64_t quota;     ///< Items that it makes.
  std::uint64_t together;  ///< Of a claim, or a group.
  std::uint64_t longest;   ///< Frames of usual items.
  std::uint64_t large;     ///< Frames of a large one, of which there are 2 percent; 0: none.
  bool claims;
  bool groups;
  bool singly;               ///< Each item has a push of its own.
  bool in_place;             ///< It is written in place.
  std::uint64_t fails;       ///< Percent of claims or groups of which one item does not come.
  std::uint64_t takes_back;  ///< Percent of claims after which it takes the last one back.
  std::uint64_t area;
  std::int64_t limit;  ///< Of a call, in ms.
  std::uint64_t work_us;
};

struct Item {
  std::uint64_t number = 0;
  std::uint64_t length = 0;
  bw_origin origin = BW_ORIGIN_INIT;
};

class Producer {
 public:
  explicit Producer(const Words& words)
      : habits_(words),
        lines_(words.text("record"), [this](const auto& line) { recall(line); }),
        random_(static_cast<unsigned>(words.number("seed") + items_)),
        connection_(connect(words, "chaos_producer")) {}
  ~Producer() {
    bw_producer_close(producer_, 1000);
    bw_close(connection_);
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void run() {
    while (!is_made_ && (items_ < habits_.quota || !doubtful_.empty())) {
      if (producer_ == nullptr) open();
      if (items_ < habits_.quota) make();
    }
    if (!is_made_) lines_.append("made");
    while (!std::filesystem::exists(habits_.audit)) std::this_thread::sleep_for(microseconds(2000));
    audit();
  }

 private:
  /// A line of an earlier life.
  void recall(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    std::uint64_t item = 0;
    words >> what >> item;
    if (what == "begin") words >> incarnation_ >> next_;
    if (what == "offer") {
      items_ = std::max(items_, item + 1);
      doubtful_.push_back(item);
      words >> offered_to_;
    }
    if (what == "took" || what == "gone") std::erase(doubtful_, item);
    if (what == "took") {
      words >> incarnation_ >> next_;
      ++next_;
    }
    if (what == "made") is_made_ = true;
  }

  bw_producer_info info() const {
    bw_producer_info info{};
    info.struct_size = sizeof info;
    require(bw_producer_get_info(producer_, &info));
    return info;
  }

  /// Its name may still be that of its own last session.
  void open() {
    bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
    options.feed = kFeed;
    options.name = habits_.name.c_str();
    options.area_bytes = habits_.area;
    bw_status status = BW_BUSY;
    while ((status = bw_produce(connection_, &options, &producer_)) == BW_BUSY) {
      std::this_thread::sleep_for(microseconds(2000));
    }
    require(status);
    const bw_producer_info now = info();
    lines_.append("begin " + std::to_string(getpid()) + ' ' + std::to_string(now.incarnation) +
                  ' ' + std::to_string(now.next));
    settle(now, offered_to_);
  }

  /// Of what was offered and not heard of: numbers say how much of it was accepted.
  void settle(const bw_producer_info& now, std::uint64_t offered_to) {
    if (now.incarnation != incarnation_) next_ = 0;
    const bool same = now.incarnation == offered_to;
    for (const std::uint64_t item : doubtful_) {
      if (same && next_ < now.next) {
        lines_.append("took " + std::to_string(item) + ' ' + std::to_string(now.incarnation) + ' ' +
                      std::to_string(next_++));
      } else {
        lines_.append("gone " + std::to_string(item));
      }
    }
    doubtful_.clear();
    if (next_ != now.next) {
      throw std::runtime_error("the next number is " + std::to_string(now.next) + ", and " +
                               std::to_string(next_) + " were accepted");
    }
    incarnation_ = now.incarnation;
  }

  bool percent(std::uint64_t share) { return random_() % 100 < share; }

  void work() {
    if (habits_.work_us != 0) {
      std::this_thread::sleep_for(microseconds(random_() % habits_.work_us));
    }
  }

  /// The items of a claim or of a group.
  void make() {
    bw_origin origin = BW_ORIGIN_INIT;
    std::uint64_t count =
        habits_.groups ? habits_.together : std::min(habits_.together, habits_.quota - items_);
    if (!begin(origin, count)) return;
    const std::uint64_t incarnation = info().incarnation;
    const bool fails = count > 1 && percent(habits_.fails);
    if (habits_.groups) {
      origin.group = (std::uint64_t{first_word(habits_.name)} << 24U) + items_;
      origin.group_size = static_cast<std::uint32_t>(count);
    }
    if (fails) --count;
    const bool early = fails && percent(50);
    if (early) abandon(origin.group, 1);
    std::vector<Item> items;
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool is_large = habits_.large != 0 && percent(2);
      items.push_back(
          {items_ + i, is_large ? habits_.large : 1 + random_() % habits_.longest, origin});
    }
    items_ += count;
    const std::uint64_t step = habits_.singly || habits_.in_place ? 1 : count;
    bool whole = true;
    for (std::uint64_t i = 0; i < count && whole; i += step) {
      work();
      whole = push({items.data() + i, static_cast<std::size_t>(step)});
      // The daemon that had the others of the group is gone.
      whole = whole && (!habits_.groups || info().incarnation == incarnation);
    }
    if (!whole) {
      abandon(origin.group, 0);
    } else if (fails && !early) {
      abandon(origin.group, 1);
    }
    if (percent(habits_.takes_back) && next_ != 0) {
      lines_.append("back " + std::to_string(next_ - 1));
      check_told(bw_abandon_number(producer_, next_ - 1));
    }
  }

  /// With a version to make them with; false when it was waited for in vain.
  bool begin(bw_origin& origin, std::uint64_t count) {
    if (!habits_.claims) {
      const bw_status status = bw_wait_version(connection_, kFeed, 0, 0, &origin.version);
      if (status != BW_TIMED_OUT) require(status);
      return true;
    }
    const bw_status status =
        bw_claim(producer_, static_cast<std::uint32_t>(count), habits_.limit, &origin.version);
    if (status == BW_TIMED_OUT) return false;
    require(status);
    note_incarnation();
    return true;
  }

  /// A claim waits over the death of a daemon, too.
  void note_incarnation() {
    const bw_producer_info now = info();
    if (now.incarnation != incarnation_) settle(now, incarnation_);
  }

  /// Whether all were accepted. What did not find room in time is offered again.
  bool push(std::span<const Item> items) {
    for (const Item& item : items) offer(item);
    while (!items.empty()) {
      std::size_t taken = 0;
      const bw_status status =
          habits_.in_place ? push_in_place(items.front(), taken) : push_copies(items, taken);
      note_taken(items.first(taken));
      items = items.subspan(taken);
      if (status == BW_OK) continue;
      const std::string why = bw_error_message();
      const bool no_room =
          status == BW_TIMED_OUT && (why.find("the pool had no room") != std::string::npos ||
                                     why.find("no room in feed") != std::string::npos);
      if (no_room) continue;
      const bool unknown = why.find("was never announced") != std::string::npos;
      if (status != BW_TIMED_OUT && !unknown) throw Failed(status);
      settle_after_doubt();
      return false;
    }
    return true;
  }

  void offer(const Item& item) {
    doubtful_.push_back(item.number);
    offered_to_ = info().incarnation;
    lines_.append("offer " + std::to_string(item.number) + ' ' + std::to_string(offered_to_) + ' ' +
                  std::to_string(item.length) + ' ' + std::to_string(item.origin.version) + ' ' +
                  std::to_string(item.origin.group) + ' ' + std::to_string(item.origin.group_size));
  }

  /// They are the first of those in doubt, and have the last numbers.
  void note_taken(std::span<const Item> items) {
    const bw_producer_info now = info();
    if (now.incarnation != incarnation_) {
      incarnation_ = now.incarnation;
      next_ = now.next - items.size();
    }
    for (const Item& item : items) {
      lines_.append("took " + std::to_string(item.number) + ' ' + std::to_string(incarnation_) +
                    ' ' + std::to_string(next_++));
      std::erase(doubtful_, item.number);
    }
  }

  /// Its end waits for the answer that the push did not wait for.
  void settle_after_doubt() {
    require(bw_producer_close(producer_, kPatienceMs));
    producer_ = nullptr;
    open();
  }

  std::string key_of(const Item& item) const {
    return habits_.name + '/' + std::to_string(item.number);
  }

  bw_status push_copies(std::span<const Item> items, std::size_t& taken) {
    std::vector<std::string> keys;
    std::vector<std::vector<std::uint32_t>> words;
    std::vector<bw_value> values;
    std::vector<bw_origin> origins;
    for (const Item& item : items) {
      keys.push_back(key_of(item));
      std::vector<std::uint32_t>& own = words.emplace_back(item.length * kFrameWords);
      fill(own, keys.back());
      values.push_back({own.data(), own.size() * sizeof(std::uint32_t), item.length});
      origins.push_back(item.origin);
    }
    std::vector<bw_sequence> sequences;
    for (std::size_t i = 0; i < items.size(); ++i) {
      sequences.push_back({keys[i].data(), keys[i].size(), &values[i], 1});
    }
    return bw_push_many(producer_, sequences.data(), sequences.size(), origins.data(),
                        habits_.limit, &taken);
  }

  bw_status push_in_place(const Item& item, std::size_t& taken) {
    const auto length = static_cast<std::uint32_t>(item.length);
    bw_room* room = nullptr;
    const bw_status reserved = bw_reserve(producer_, &length, 1, habits_.limit, &room);
    if (reserved != BW_OK) return reserved;
    auto* const words = static_cast<std::uint32_t*>(bw_room_field(room, 0, nullptr));
    const std::string key = key_of(item);
    fill({words, item.length * kFrameWords}, key);
    const bw_status status =
        bw_commit(room, key.data(), key.size(), &item.origin, habits_.limit, nullptr);
    taken = status == BW_OK ? 1 : 0;
    const std::string why = status == BW_OK ? "" : bw_error_message();
    if (status != BW_OK) {
      bw_room_drop(room);
      if (why.find("the pool had no room") != std::string::npos)
        return push_copies({&item, 1}, taken);
    }
    return status;
  }

  static void fill(std::span<std::uint32_t> words, const std::string& key) {
    const std::uint32_t first = first_word(key);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_at(first, i);
  }

  void abandon(std::uint64_t group, std::uint32_t count) {
    if (group == BW_NO_GROUP && !habits_.claims) return;
    lines_.append("abandon " + std::to_string(group));
    check_told(bw_abandon(producer_, group, count));
    // Of members that it had not begun, too.
    if (group != BW_NO_GROUP && count == 0) check_told(bw_abandon(producer_, BW_NO_GROUP, 0));
  }

  static void check_told(bw_status status) {
    if (status != BW_TIMED_OUT) require(status);
  }

  /// All has ended: what became of the numbers that this daemon knows.
  void audit() {
    if (producer_ == nullptr) open();
    bw_outcomes_total total{};
    for (std::uint64_t looks = 0;; ++looks) {
      total.struct_size = sizeof total;
      require(bw_outcomes(producer_, kPatienceMs, &total));
      if (total.waiting + total.delivered == 0 || looks == kAuditLooks) break;
      std::this_thread::sleep_for(microseconds(1000));
    }
    std::vector<bw_outcome> states(BW_MAX_OUTCOMES);
    std::size_t count = states.size();
    require(bw_outcomes_of(producer_, 0, kPatienceMs, states.data(), &count));
    const bw_producer_info now = info();
    std::string line = "outcomes " + std::to_string(now.incarnation) + ' ';
    for (std::size_t i = 0; i < count; ++i) line += static_cast<char>('0' + states[i]);
    lines_.append(line);
    lines_.append("totals " + std::to_string(now.incarnation) + ' ' + std::to_string(now.next) +
                  ' ' + std::to_string(total.unknown) + ' ' + std::to_string(total.waiting) + ' ' +
                  std::to_string(total.delivered) + ' ' + std::to_string(total.done) + ' ' +
                  std::to_string(total.dropped_stale) + ' ' + std::to_string(total.abandoned) +
                  ' ' + std::to_string(total.lost));
    std::fprintf(stderr, "done, after %llu reconnects\n",
                 static_cast<unsigned long long>(now.reconnects));
  }

  const Habits habits_;
  std::uint64_t items_ = 0;  ///< That were begun, in all lives.
  std::vector<std::uint64_t>
      doubtful_;                  ///< Items that were offered, and are neither taken nor gone.
  std::uint64_t offered_to_ = 0;  ///< The incarnation.
  std::uint64_t incarnation_ = 0;
  std::uint64_t next_ = 0;  ///< What the daemon would give the next item.
  bool is_made_ = false;
  Lines lines_;
  std::minstd_rand random_;
  bw_connection* connection_ = nullptr;
  bw_producer* producer_ = nullptr;
};

}  // namespace

int main(int count, char** words) {
  try {
    Producer producer{Words(count, words)};
    producer.run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_producer: %s\n", error.what());
    return 1;
  }
}
