#include "daemon/delivery/work_threads.h"

#include <utility>

namespace batchwright {
namespace {

/// A reader of readahead ends after so long without work.
constexpr std::chrono::seconds kReadersStay{10};

/// Between two looks at the assembly threads.
constexpr std::chrono::milliseconds kLooks{100};

HelperThread::Elsewhere between_jobs_of(Assembler& assembler, Assembler::Between kind) {
  return [&assembler, kind](std::function<void()> work) {
    assembler.do_between(kind, std::move(work));
  };
}

}  // namespace

WorkThreads::WorkThreads(boost::asio::io_context& loop, unsigned assembly_threads,
                         std::string_view copies, const ThreadPolicy& policy)
    : planner_(kFewThreads ? Planner(loop, between_jobs_of(assembler_, Assembler::Between::plans))
                           : Planner(loop)),
      readahead_(kFewThreads ? Readahead(between_jobs_of(assembler_, Assembler::Between::look_ups))
                             : Readahead(nullptr, kReadersStay, policy)),
      assembler_(assembly_threads, copies, policy),
      looks_(loop, kLooks, [this] { return assembler_.look(Assembler::Time::clock::now()); }) {
  assembler_.on_begun([this] {
    if (!looks_.is_running()) looks_.start();
  });
}

// Or else the assembler, which ends first, might have to make these plans.
WorkThreads::~WorkThreads() { planner_.drop(); }

}  // namespace batchwright
