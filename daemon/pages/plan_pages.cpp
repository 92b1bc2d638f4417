#include "daemon/pages/plan_pages.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

namespace batchwright {
namespace {

constexpr std::size_t kMostWaiting = 4;   ///< Pages.
constexpr std::size_t kMostAnswers = 32;  ///< Requests that may wait for one page.
constexpr std::size_t kMostKept = 8;      ///< Some 60 KB each.
constexpr int kNice = 10;                 ///< Nice value of the pages' thread.
constexpr const char* kText = "text/plain; charset=utf-8";

/// The epoch that is asked for; empty without one. Errors: invalid_argument.
Result<std::optional<Epoch>> asked_epoch(const Target& target) {
  std::optional<std::uint64_t> epoch;
  for (const auto& [key, value] : target.query) {
    if (key != "epoch") {
      return Error{ErrorCode::invalid_argument, fmt::format("unknown: {}; allowed: epoch", key)};
    }
    epoch = parse_whole<std::uint64_t>(value);
    if (!epoch) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("epoch: found \"{}\"; allowed: 0 to 18446744073709551615", value)};
    }
  }
  return epoch ? std::optional(Epoch{*epoch}) : std::nullopt;
}

/// Two questions with one key have one answer, for a plan is a pure function of these.
std::string key_of(const PlanQuestion& question) {
  const Fingerprint fingerprint = question.planned
                                      ? question.planned->fingerprint
                                      : fingerprint_of(*question.snapshot, question.settings);
  return question.feed + " " + to_string(fingerprint) + " " + std::to_string(question.epoch.value);
}

Reply json_reply(const std::string& page) { return {200, "application/json", page}; }

Reply busy() {
  return {503, kText, "too many plans are asked for; ask again\n", {{"Retry-After", "1"}}};
}

Reply reply_of(const Result<std::string>& page) {
  if (page) return json_reply(*page);
  // A plan that is infeasible is so by the epoch that was asked for: 400.
  const unsigned status = page.error().code == ErrorCode::internal ? 500 : 400;
  return {status, kText, page.error().message + "\n"};
}

}  // namespace

PlanPages::PlanPages(boost::asio::io_context& loop, Server& server, Make make)
    : loop_(loop),
      server_(server),
      make_(std::move(make)),
      rest_(loop),
      // Of this thread alone, as Linux has it. Where it is refused pages take their turn as all do.
      thread_("bw-pages", [] { static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice)); }) {}

void PlanPages::answer(const Target& target, Answer answer) {
  const std::string& name = target.names.at(0);
  const Feed* feed = server_.find_feed(name);
  if (feed == nullptr) return answer(no_such_feed(name));
  if (feed->is_live()) {
    return answer({404, kText, fmt::format("feed {} is live, and has no plan\n", name)});
  }
  const auto epoch = asked_epoch(target);
  if (!epoch) return answer({400, kText, epoch.error().message + "\n"});
  Waiting waiting{{}, feed->plan_question(*epoch), {}};
  waiting.key = key_of(waiting.question);
  // A page never ages: the same key has the same plan.
  for (const Kept& kept : kept_) {
    if (kept.key == waiting.key) return answer(json_reply(kept.page));
  }
  // A page that many readers ask for is made once.
  for (Waiting& other : waiting_) {
    if (other.key != waiting.key) continue;
    if (other.answers.size() >= kMostAnswers) return answer(busy());
    return other.answers.push_back(std::move(answer));
  }
  if (waiting_.size() >= kMostWaiting) return answer(busy());
  waiting.answers.push_back(std::move(answer));
  enqueue(std::move(waiting));
}

Reply PlanPages::no_such_feed(const std::string& name) const {
  std::string text = fmt::format("no feed \"{}\"; there is:", name);
  for (const auto& feed : server_.feeds()) text += " " + feed->name();
  return {404, kText, text + "\n"};
}

void PlanPages::enqueue(Waiting waiting) {
  waiting_.push_back(std::move(waiting));
  if (waiting_.size() == 1) begin_rested();
}

void PlanPages::begin_rested() {
  // The rest may be over already, or never have begun.
  if (rest_.expiry() <= std::chrono::steady_clock::now()) return begin_next();
  rest_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->begin_next();
  });
}

void PlanPages::begin_next() {
  thread_.put(
      [this, weak = weak_from_this(), question = std::move(waiting_.front().question)]() mutable {
        const auto began = std::chrono::steady_clock::now();
        // A lack of memory ends this page, not the daemon.
        auto page = std::make_shared<Result<std::string>>(
            as_result(ErrorCode::internal, "planning: ", [&] { return make_(question); }));
        // Measured here: the wait for the loop is no work of this thread.
        const auto took = std::chrono::steady_clock::now() - began;
        // What the question keeps alive may be the last of a dataset's, whose file system may be
        // slow.
        question = {};
        boost::asio::post(loop_, [weak = std::move(weak), page, took] {
          if (const auto self = weak.lock()) self->made(std::move(*page), took);
        });
      });
}

void PlanPages::made(Result<std::string> page, std::chrono::steady_clock::duration took) {
  Waiting done = std::move(waiting_.front());
  waiting_.pop_front();
  if (page) kept_.push_back({done.key, *page});
  if (kept_.size() > kMostKept) kept_.pop_front();
  // An error is not kept, but it has cost its time: the rest follows all the same.
  rest_.expires_after(took);
  if (!waiting_.empty()) begin_rested();
  const Reply reply = reply_of(page);
  for (const Answer& answer : done.answers) answer(reply);
}

}  // namespace batchwright
