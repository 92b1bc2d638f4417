#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/delivery.h"
#include "daemon/http/http.h"
#include "daemon/pages/plan_figures.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Answers /feeds/NAME/plan. Pages are made on a thread of their own, which gives way to all others
/// and rests after each page for as long as it took: a reader that asks for one epoch after another
/// delays no plan that a feed needs, and takes half a core at most. The pages asked for last are
/// kept.
///
/// Lifetime: `loop` and `server` outlive it; its end waits for the page at hand.
/// Threads: the event loop only.
class PlanPages : public std::enable_shared_from_this<PlanPages> {
 public:
  using Answer = std::function<void(Reply)>;

  /// Makes one page. Called on the pages' thread.
  using Make = std::function<Result<std::string>(const PlanQuestion&)>;

  PlanPages(boost::asio::io_context& loop, Server& server, Make make = plan_figures);

  /// 404 with the feeds there are; 400 with what is allowed; 503 when too many wait already.
  void answer(const Target& target, Answer answer);

 private:
  struct Waiting {
    std::string key;  ///< The page's key: feed, data, settings, epoch.
    PlanQuestion question;
    std::vector<Answer> answers;
  };
  struct Kept {
    std::string key;
    std::string page;
  };

  Reply no_such_feed(const std::string& name) const;
  void enqueue(Waiting waiting);
  void begin_rested();
  void begin_next();
  void made(Result<std::string> page, std::chrono::steady_clock::duration took);

  boost::asio::io_context& loop_;
  Server& server_;
  Make make_;
  boost::asio::steady_timer rest_;  ///< The thread's rest; the thread has ended when it is over.
  std::deque<Waiting> waiting_;     ///< The first is being made.
  std::deque<Kept> kept_;           ///< The latest last.
  HelperThread thread_;
};

}  // namespace batchwright
