#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/delivery/delivery.h"
#include "daemon/plan_figures.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Answers /feeds/NAME/plan. A page is made on the planning thread, one at a time, so that a plan
/// which a feed needs waits for one page at most; those asked for last are kept.
///
/// Lifetime: `loop` and `server` outlive the endpoint that calls it.
/// Threads: the event loop only.
class PlanPages : public std::enable_shared_from_this<PlanPages> {
 public:
  using Answer = std::function<void(Reply)>;

  PlanPages(boost::asio::io_context& loop, Server& server) : loop_(loop), server_(server) {}

  /// 404 with the feeds there are; 400 with what is allowed; 503 when too many wait already.
  void answer(const Target& target, Answer answer);

 private:
  struct Waiting {
    std::string key;  ///< Of the page: feed, data, settings, epoch.
    PlanQuestion question;
    std::vector<Answer> answers;
  };
  struct Kept {
    std::string key;
    std::string page;
  };

  Reply no_such_feed(const std::string& name) const;
  void enqueue(Waiting waiting);
  void begin_next();
  void made(Result<std::string> page);

  boost::asio::io_context& loop_;
  Server& server_;
  std::deque<Waiting> waiting_;  ///< The first is being made.
  std::deque<Kept> kept_;        ///< The latest last.
};

}  // namespace batchwright
