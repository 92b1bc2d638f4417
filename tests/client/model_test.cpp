// The library against whatever a daemon may say and do, and whatever a program may call, in every
// short order. Who is right is not the question here: nothing may crash, no batch may come for
// which no client has a lease, none that is held may change, and each error has a text.

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint32_t kTrain = 1;  ///< The subscription that the words are about; 2 is another.

/// Letters of a word. The daemon's:
///   T  a ticket for the batch that is due   E  the end of the epoch   S  Subscribed, once more
///   R  refuses the subscription for good     M  refuses it as replaced Y  says goodbye
///   X  a ticket that is not due              D  dies
/// of a dead one: A  is back as it was; P  with another plan; F  with another feed in that arena.
/// The program's:
///   n  bw_next     o  bw_next of the other   r  bw_release   i  bw_connection_get_info
///   u  bw_unsubscribe                        c  bw_close
class Play {
 public:
  explicit Play(ErrorCode refusal) : refusal_(refusal), daemon_(manners("train", 1)) {
    connection_ = connect(daemon_.endpoint());
    train_ = subscribe(connection_);
    other_ = subscribe(connection_);
    say('T');
    daemon_.flush();
  }

  /// Whether this letter means anything now.
  bool may(char letter) const {
    const bool of_the_dead = letter == 'A' || letter == 'P' || letter == 'F';
    if (letter >= 'A' && letter <= 'Z') return dead_ == of_the_dead;
    if (letter == 'n' || letter == 'u') return train_ != nullptr;
    if (letter == 'r') return !held_.empty();
    return letter == 'o' || connection_ != nullptr;
  }

  void play(char letter) {
    if (letter >= 'A' && letter <= 'Z') {
      say(letter);
      if (!dead_) daemon_.flush();
    } else {
      call(letter);
    }
    check_held();
  }

 private:
  struct Held {
    BatchHandle batch;
    std::uint64_t index;
  };

  static ThreadPolicy manners(const std::string& feed, std::uint64_t data) {
    ThreadPolicy manners;
    manners.steps = 50;
    manners.data = data;
    manners.feed = feed;
    manners.may_join = true;
    return manners;
  }

  /// Where the daemon was last asked to go on, by those that asked since it is there.
  std::uint64_t due() {
    std::uint64_t step = due_;
    daemon_.has_heard([&](const auto& heard) {
      for (std::size_t i = seen_; i < heard.subscribed.size(); ++i) {
        if (heard.subscribed[i].subscription == kTrain) step = heard.subscribed[i].step;
      }
      seen_ = heard.subscribed.size();
      return true;
    });
    return step;
  }

  void say(char letter) {
    switch (letter) {
      case 'T':
        due_ = due();
        leases_.insert(daemon_.deliver(kTrain, epoch_, due_, due_));
        ++due_;
        break;
      case 'X': daemon_.deliver(kTrain, epoch_ + 1, 7, 7); break;
      case 'E': {
        wire::EpochEndT end;
        end.subscription = kTrain;
        end.epoch = epoch_++;
        end.steps = due();
        due_ = 0;
        daemon_.send(std::move(end));
        break;
      }
      case 'S': {
        wire::SubscribedT late;
        late.subscription = kTrain;
        late.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
        late.steps = 50;
        late.world = late.batches_per_step = late.window = late.arena = 1;
        daemon_.send(std::move(late));
        break;
      }
      case 'R': refuse(refusal_); break;
      case 'M': refuse(ErrorCode::disconnected); break;
      case 'Y': daemon_.send(wire::ByeT{}); break;
      case 'D': die(); break;
      case 'A': rise(manners("train", 1)); break;
      case 'P': rise(manners("train", 9)); break;
      default: rise(manners("valid", 1)); break;
    }
  }

  void refuse(ErrorCode code) {
    wire::RefusedT refused;
    refused.code = static_cast<std::uint16_t>(code);
    refused.message = "the feed is not what it was";
    refused.subscription = kTrain;
    daemon_.send(std::move(refused));
  }

  void die() {
    daemon_.die();
    dead_ = true;
    leases_.clear();  // with it all it had given
  }

  void rise(ThreadPolicy manners) {
    const bool foreign = manners.feed != "train";
    daemon_.has_heard([this](const auto& heard) {
      had_ = heard.subscribed.size();
      return true;
    });
    daemon_.rise(std::move(manners));
    for (std::uint64_t i = 0; foreign && i < 4; ++i) daemon_.lay_out(0, i, i);
    dead_ = false;
    risen_ = true;
  }

  void call(char letter) {
    switch (letter) {
      case 'n': take(train_.get(), 1); break;
      case 'o': meet(); break;
      case 'r': held_.pop_back(); break;
      case 'u': train_.reset(); break;
      case 'c': connection_.reset(); break;
      default: {
        bw_connection_info info{};
        info.struct_size = sizeof info;
        CHECK(bw_connection_get_info(connection_.get(), &info) == BW_OK);
      }
    }
  }

  /// The other one looks until a daemon that came back was asked to go on, and once more.
  void meet() {
    const auto asked = [this] {
      return daemon_.has_heard(
          [this](const auto& heard) { return heard.subscribed.size() > had_; });
    };
    for (int i = 0; i < 100 && risen_ && !dead_ && connection_ && !asked(); ++i) {
      bw_batch* raw = nullptr;
      if (bw_next(other_.get(), 10, &raw, nullptr) != BW_TIMED_OUT) break;
    }
    take(other_.get(), 1);
  }

  void take(bw_subscription* from, std::int64_t limit) {
    bw_batch* raw = nullptr;
    const bw_status status = bw_next(from, limit, &raw, nullptr);
    if (status > BW_OK) {
      CHECK(std::string(bw_error_message()) != "");
      CHECK(std::string(bw_status_name(status)) != "unknown");
    }
    if (status != BW_OK) return;
    BatchHandle batch(raw);
    CHECK(from == train_.get());  // the other one was given nothing
    CHECK_FALSE(dead_);           // its arena's connection says so at once
    CHECK_FALSE(leases_.empty());
    const bw_batch_header& header = *bw_batch_get_header(raw);
    CHECK(std::string(header.feed) == "train");
    CHECK(header.fingerprint.data == 1);
    held_.push_back({std::move(batch), header.index});
  }

  void check_held() const {
    for (const Held& held : held_) {
      const auto* floats =
          static_cast<const float*>(bw_batch_tensor_named(held.batch.get(), "features")->data);
      CHECK(floats[9] == FakeDaemon::value(held.index, 1, 1, 1));
    }
  }

  const ErrorCode refusal_;
  FakeDaemon daemon_;
  ConnectionHandle connection_;
  SubscriptionHandle train_;
  SubscriptionHandle other_;
  std::vector<Held> held_;
  std::set<std::uint64_t> leases_;  ///< That the daemon which is there has given.
  std::uint64_t epoch_ = 0;
  std::uint64_t due_ = 0;
  std::size_t seen_ = 0;
  std::size_t had_ = 0;  ///< Subscribes that were heard before it rose last.
  bool risen_ = false;
  bool dead_ = false;
};

/// Plays a word, or as much of it as means anything; its letters that do not are passed over.
void play(const std::string& word, ErrorCode refusal) {
  CAPTURE(word);
  Play play(refusal);
  for (const char letter : word) {
    if (play.may(letter)) play.play(letter);
  }
}

/// Every word of this length whose letters are meant where they stand, as far as that is told by
/// whether the daemon lives and what is closed.
void each_word(const std::string& letters, std::size_t length, const std::string& begun, bool dead,
               const std::function<void(const std::string&)>& visit) {
  if (length == 0) return visit(begun);
  for (const char letter : letters) {
    const bool rises = letter == 'A' || letter == 'P' || letter == 'F';
    const bool daemons = letter >= 'A' && letter <= 'Z';
    if (daemons && rises != dead) continue;
    const bool once = letter == 'u' || letter == 'c';
    if (once && begun.find(letter) != std::string::npos) continue;
    if (letter == 'n' && begun.find('u') != std::string::npos) continue;
    each_word(letters, length - 1, begun + letter, letter == 'D' || (dead && !rises), visit);
  }
}

/// Codes in turn, so that each comes with many words.
ErrorCode code_of(std::size_t n) {
  constexpr std::uint16_t kCodes = 19;
  return static_cast<ErrorCode>(n % kCodes + 1);
}

}  // namespace

TEST_CASE("client: no order of calls and of what a daemon does breaks it") {
  std::size_t words = 0;
  each_word("TERMSXYDAPFnoruci", 3, "", false,
            [&](const std::string& word) { play(word + "no", code_of(words++)); });
  CHECK(words > 500);
}

TEST_CASE("client: what a daemon does in any order, and then the program, breaks nothing") {
  std::size_t words = 0;
  each_word("RMYDAPF", 4, "", false, [&](const std::string& word) {
    for (const char* calls : {"nrn", "onn", "nuon", "cnn"}) play(word + calls, code_of(words++));
  });
  CHECK(words > 500);
}

TEST_CASE("client: a refusal of any code, and a daemon that goes then, end in that code's error") {
  for (std::uint16_t code = 1; code <= 19; ++code) {
    if (code == static_cast<std::uint16_t>(ErrorCode::disconnected)) continue;  // it is asked again
    for (const char* word : {"oRoDn", "oRoDAon", "oRoDFon", "oRnn"}) {
      play(word, static_cast<ErrorCode>(code));
    }
  }
}
