#include "formats/base/kernel/limits.h"

#include <fmt/core.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <latch>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "formats/base/kernel/start_thread.h"
#include "formats/base/text/text_file.h"

namespace batchwright {
namespace {

/// Empty where there is no such limit.
std::optional<unsigned long long> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

/// The lowest pids.max from a control group upwards; empty: there is none.
std::optional<std::string> pids_limit(const std::string& root, std::string group) {
  std::optional<std::string> lowest;
  for (;; group.resize(group.rfind('/'))) {
    std::string text = file_text(root + group + "/pids.max").value_or("");
    while (text.ends_with('\n')) text.pop_back();
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    const auto less = [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    if (is_number && (!lowest || less(text, *lowest))) lowest = text;
    if (group.find('/') == group.npos) return lowest;
  }
}

/// Of version 2, "0::/path", or of version 1, "5:pids:/path".
std::optional<std::string> pids_limit() {
  const std::string groups = file_text("/proc/self/cgroup").value_or("");
  for (const auto& [mark, root] :
       {std::pair("0::", "/sys/fs/cgroup"), std::pair(":pids:", "/sys/fs/cgroup/pids")}) {
    const std::size_t at = groups.find(mark);
    if (at == groups.npos) continue;
    const std::size_t begin = at + std::string_view(mark).size();
    std::string group = groups.substr(begin, groups.find('\n', begin) - begin);
    if (group == "/") group.clear();
    if (auto limit = pids_limit(root, std::move(group))) return limit;
  }
  return std::nullopt;
}

std::string limits_of_threads() {
  std::string text;
  const auto add = [&text](const std::string& limit) {
    text += (text.empty() ? " (limits: " : "; ") + limit;
  };
  if (const auto group = pids_limit()) add(fmt::format("pids.max of its control group {}", *group));
  if (const auto user = limit_of(RLIMIT_NPROC)) {
    add(fmt::format("processes and threads of its user {}, ulimit -u, LimitNPROC=", *user));
  }
  if (const auto bytes = limit_of(RLIMIT_AS)) {
    add(fmt::format("address space {} KiB, ulimit -v, LimitAS=", *bytes >> 10));
  }
  return text.empty() ? text : text + ")";
}

/// Threads that are started while it lives get no signal: those are the program's.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::string reason_with_limit(int code) {
  const std::string reason = std::strerror(code);
  if (const auto bytes = limit_of(RLIMIT_FSIZE); code == EFBIG && bytes) {
    return fmt::format("{} (a file may have {} bytes: ulimit -f, LimitFSIZE=)", reason, *bytes);
  }
  if (const auto bytes = limit_of(RLIMIT_AS); code == ENOMEM && bytes) {
    return fmt::format("{} (address space may have {} KiB: ulimit -v, LimitAS=)", reason,
                       *bytes >> 10);
  }
  if (const auto files = limit_of(RLIMIT_NOFILE); code == EMFILE && files) {
    return fmt::format("{} ({} file descriptors: ulimit -n, LimitNOFILE=)", reason, *files);
  }
  return reason;
}

Result<void> room_for_threads(std::size_t count, const std::string& what) {
  const NoSignals no_signals;
  std::latch go(1);
  std::vector<std::jthread> tried;
  tried.reserve(count);
  while (tried.size() < count) {
    auto thread = start_thread(nullptr, [&go](const auto&) { go.wait(); });
    if (!thread) break;
    tried.push_back(std::move(*thread));
  }
  go.count_down();
  if (tried.size() == count) return {};
  return Error{ErrorCode::io_error,
               fmt::format("{} needs {} threads, and {} could be started{}", what, count,
                           tried.empty() ? "none" : fmt::format("only {}", tried.size()),
                           limits_of_threads())};
}

}  // namespace batchwright
