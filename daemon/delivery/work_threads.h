#pragma once

#include <boost/asio/io_context.hpp>
#include <string_view>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/repeating_timer.h"

namespace batchwright {

/// What works for the feeds beside the event loop: it plans, reads ahead and assembles. Where
/// threads are few (few_threads.h), the assembly threads do all of it. Threads: as each of the
/// three says. Destruction waits for what is under way, and for every job of the assembler; plans
/// that have not begun are not made.
class WorkThreads {
 public:
  /// As Assembler takes them.
  WorkThreads(boost::asio::io_context& loop, unsigned assembly_threads, std::string_view copies,
              const ThreadPolicy& policy);
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

  Planner& planner() { return planner_; }
  Readahead& readahead() { return readahead_; }
  const Readahead& readahead() const { return readahead_; }
  Assembler& assembler() { return assembler_; }
  const Assembler& assembler() const { return assembler_; }

 private:
  Planner planner_;
  Readahead readahead_;
  Assembler assembler_;   ///< It ends before the two that may work on its threads.
  RepeatingTimer looks_;  ///< At assembly threads that may be lost, while there are jobs.
};

}  // namespace batchwright
