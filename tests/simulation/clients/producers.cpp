#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "client/library/produce/producer.h"
#include "tests/simulation/clients/client.h"
#include "tests/simulation/clients/live_programs.h"
#include "tests/simulation/clients/transport.h"

namespace batchwright::simulation {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWordsOfFrame = 16;  ///< Of the feed's only field.

std::uint64_t group_of(const std::string& name, std::uint64_t item) {
  return std::uint64_t{written_for(name)} << 24U | item;
}

/// An item with its bytes.
struct Item {
  std::string key;
  std::vector<std::uint32_t> words;
  bw_value value{};

  Item(const std::string& name, std::uint64_t number, std::uint32_t length)
      : key(fmt::format("{}/{}", name, number)),
        words(length * kWordsOfFrame, written_for(key)),
        value{words.data(), words.size() * sizeof(std::uint32_t), length} {}
  bw_sequence sequence() const { return {key.data(), key.size(), &value, 1}; }
};

/// One start of a program that makes items.
class Making {
 public:
  Making(const Surroundings& around, Process& process, const ProducerTerms& terms, Made& made)
      : around_(around), process_(process), terms_(terms), made_(made) {
    trains_.work = terms_.work;
  }

  void run() {
    if (is_done()) return;
    open();
    if (!terms_.claims) client_.emplace(around_, process_, trains_);
    while (!is_done() && make()) {
    }
    producer_->close(milliseconds(1000));
  }

 private:
  using Verdict = Producer::Verdict;
  enum class Fate { accepted, lost, ended };

  bool is_done() const { return terms_.quota != 0 && made_.items >= terms_.quota; }
  World& world() const { return around_.world; }
  const Conversation::Numbers& numbers() const { return producer_->conversation().numbers(); }

  /// Its name may still be that of its own last session.
  void open() {
    ConnectSettings settings;
    settings.program = process_.name();
    const char* endpoint =
        process_.is_remote() ? "tcp://192.0.2.1:7777" : "ipc:///simulated/batchwright.sock";
    Conversation::Wanted wanted{"train", terms_.name, terms_.area_bytes};
    if (terms_.part_bytes != 0) wanted.part_bytes = terms_.part_bytes;
    while (true) {
      auto made =
          Producer::open(endpoint, settings,
                         std::make_unique<VirtualTransport>(around_.network, around_.onlooker,
                                                            process_.shared_from_this()),
                         {wanted, milliseconds(0)});
      if (made) {
        producer_ = std::move(*made);
        break;
      }
      const Error& error = made.error();
      world().note(process_.name() + ": " + error.message);
      const bool passes = error.code == ErrorCode::busy || error.code == ErrorCode::timed_out;
      if (!passes) world().fail(process_.name() + " cannot produce: " + error.message);
      process_.sleep(world().dice.time(milliseconds(50), milliseconds(500)));
    }
    if (numbers().next != 0) world().sometimes(Mark::producer_returned);
    // What its last life had pushed and did not hear of.
    const bool is_known = numbers().incarnation == made_.incarnation;
    if (is_known && numbers().next > made_.next) made_.items += numbers().next - made_.next;
    note(0);
  }

  /// So many items more are done with.
  void note(std::uint64_t items) {
    made_ = {made_.items + items, numbers().incarnation, numbers().next};
  }

  /// Makes some items; false when the feed has ended.
  bool make() {
    Dice& dice = world().dice;
    bw_origin origin = BW_ORIGIN_INIT;
    if (terms_.claims) {
      const auto claimed = producer_->claim(terms_.together, terms_.limit, origin.version);
      if (!claimed) return wait_again(claimed.error(), Mark::claim_in_vain);
      if (*claimed == Verdict::ended) return false;
    } else if (const auto newest = client_->version()) {
      origin.version = *newest;
    } else {
      return true;
    }
    const std::uint64_t incarnation = numbers().incarnation;
    if (terms_.makes_groups) {
      origin.group = group_of(terms_.name, made_.items);
      origin.group_size = terms_.together;
    }
    const bool fails = dice.percent(terms_.abandons);
    const std::uint32_t count = terms_.together - (fails && terms_.together > 1 ? 1 : 0);
    const bool early = dice.percent(50);
    if (fails && early && terms_.makes_groups) abandon(origin.group, 1);
    Fate fate = Fate::accepted;
    for (std::uint32_t i = 0; i < count && fate == Fate::accepted;) {
      work();
      const std::uint32_t some = terms_.in_one_push ? count : 1;
      fate = push(some, origin);
      i += some;
      // The daemon that had the others of its group is gone.
      const bool is_torn = terms_.makes_groups && numbers().incarnation != incarnation;
      if (is_torn && fate == Fate::accepted) fate = Fate::lost;
    }
    if (fate == Fate::ended) return false;
    if (fate == Fate::lost) {
      abandon(origin.group, 0);
      if (terms_.makes_groups) abandon(kNoGroup, 0);  // of members that it had not begun, too
    } else if (fails && !(early && terms_.makes_groups)) {
      abandon(origin.group, 1);
    }
    if (dice.percent(terms_.takes_back) && numbers().next != 0) take_back(numbers().next - 1);
    return true;
  }

  void work() {
    if (terms_.work > milliseconds(1)) {
      process_.sleep(world().dice.time(milliseconds(1), terms_.work));
    }
  }

  Fate push(std::uint32_t count, const bw_origin& origin) {
    std::vector<Item> items;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t length = world().dice.between(1, terms_.max_length);
      items.emplace_back(terms_.name, made_.items + i, length);
    }
    return terms_.in_place ? write_in_place(items.front(), origin) : push_copies(items, origin);
  }

  Fate push_copies(const std::vector<Item>& items, const bw_origin& origin) {
    std::vector<bw_sequence> sequences;
    for (const Item& item : items) sequences.push_back(item.sequence());
    const std::vector<bw_origin> origins(items.size(), origin);
    std::size_t accepted = 0;
    while (true) {
      const std::uint64_t incarnation = numbers().incarnation;
      const auto from = static_cast<std::ptrdiff_t>(accepted);
      std::size_t more = 0;
      const auto pushed = producer_->push(
          {std::span(sequences).subspan(accepted), origins.data() + from}, terms_.limit, more);
      if (numbers().incarnation != incarnation) world().sometimes(Mark::producer_renumbered);
      accepted += more;
      note(more);
      if (pushed) return *pushed == Verdict::ended ? Fate::ended : Fate::accepted;
      if (wait_again(pushed.error(), Mark::push_in_vain) && !is_in_doubt(pushed.error())) continue;
      note(items.size() - accepted);  // they are given up
      return Fate::lost;
    }
  }

  Fate write_in_place(const Item& item, const bw_origin& origin) {
    const auto length = static_cast<std::uint32_t>(item.value.length);
    std::unique_ptr<WrittenRoom> room;
    while (true) {
      const auto reserved = producer_->reserve({&length, 1}, terms_.limit, room);
      if (reserved) break;
      wait_again(reserved.error(), Mark::push_in_vain);
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(item.words.data());
    std::copy(bytes, bytes + item.value.bytes, room->memory().begin());
    while (true) {
      const auto pushed = producer_->commit(*room, {item.key, &origin}, terms_.limit);
      if (pushed) {
        if (*pushed == Verdict::ended) return Fate::ended;
        note(1);
        return Fate::accepted;
      }
      if (wait_again(pushed.error(), Mark::push_in_vain) && !room->is_over) continue;
      producer_->drop(*room);
      note(1);
      return Fate::lost;
    }
  }

  /// What became of it is not known: the daemon did not say.
  static bool is_in_doubt(const Error& error) {
    return error.message.find("the pool had no room") == std::string::npos;
  }

  /// Whether it may be tried again. A version that its daemon does not know, since it is a new one,
  /// makes what was made of it useless.
  bool wait_again(const Error& error, Mark mark) {
    world().note(process_.name() + ": " + error.message);
    if (error.code == ErrorCode::timed_out) {
      world().sometimes(mark);
      return true;
    }
    const bool is_unknown = error.message.find("was never announced") != std::string::npos;
    if (!is_unknown) world().fail(process_.name() + ": " + error.message);
    world().sometimes(Mark::version_unknown);
    return false;
  }

  void abandon(std::uint64_t group, std::uint32_t count) {
    if (group == kNoGroup && !terms_.claims) return;
    wire::AbandonT what;
    what.group = group;
    what.count = count;
    send(what);
  }

  void take_back(std::uint64_t number) {
    wire::AbandonT what;
    what.by_number = true;
    what.number = number;
    send(what);
  }

  void send(const wire::AbandonT& what) {
    const auto sent = producer_->abandon(what);
    if (!sent && sent.error().code != ErrorCode::timed_out) {
      world().fail(process_.name() + ": " + sent.error().message);
    }
  }

  const Surroundings& around_;
  Process& process_;
  const ProducerTerms& terms_;
  Made& made_;
  ProgramTerms trains_;
  std::unique_ptr<Producer> producer_;
  std::optional<Client> client_;  ///< For what it asks beside that.
};

}  // namespace

Process::Main producer(const Surroundings& around, const ProducerTerms& terms, Made* made) {
  return [around, terms, made](Process& process) { Making(around, process, terms, *made).run(); };
}

}  // namespace batchwright::simulation
