#include "daemon/delivery/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace batchwright {
namespace {

/// A kill can cut a write() off where the file goes on to its next page.
bool is_cut_off(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path, const std::string& feed) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) {
    return Error{ErrorCode::io_error, "ledger " + path + ": open: " + std::strerror(errno)};
  }
  std::unique_ptr<Ledger> ledger(new Ledger(path, feed, file));
  if (is_cut_off(file)) {
    if (auto ended = ledger->write_line("\n"); !ended) return ended.error();
  }
  return ledger;
}

Ledger::~Ledger() { ::close(file_); }

/// `client` is the token: the same after a reconnect, and in every feed.
Result<void> Ledger::delivered(const Entry& entry, const EpochPlan& plan) {
  plan.rows(entry.id.index, rows_);
  std::string line = fmt::format(
      R"({{"event":"delivered","feed":"{}","client":"{:016x}","pid":{},"subscription":{},)"
      R"("lease":{},"epoch":{},"step":{},"index":{},"rehearsal":{},"ordinals":[)",
      feed_, entry.client.token, entry.client.pid, entry.subscription, entry.lease,
      entry.id.epoch.value, entry.id.index.value / plan.world(), entry.id.index.value,
      entry.rehearsal);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    line += (i == 0 ? "" : ",") + std::to_string(rows_[i].ordinal);
  }
  return write_line(line + "]}\n");
}

Result<void> Ledger::released(const ClientInfo& client, std::uint64_t lease, bool in_queue) {
  return write_line(
      fmt::format(R"({{"event":"{}","feed":"{}","client":"{:016x}","pid":{},"lease":{}}})"
                  "\n",
                  in_queue ? "done" : "released", feed_, client.token, client.pid, lease));
}

/// One write() a line: lines of several daemons in one file do not mix.
Result<void> Ledger::write_line(const std::string& line) const {
  if (::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
  return Error{ErrorCode::io_error, "ledger " + path_ + ": write: " + std::strerror(errno)};
}

}  // namespace batchwright
