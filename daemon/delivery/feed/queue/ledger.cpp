#include "daemon/delivery/feed/queue/ledger.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace batchwright {
namespace {

/// A kill can cut a write() off where the file goes on to its next page, and a full disk anywhere.
Result<bool> is_cut_off(const KeptFile& file) {
  const auto size = file.size();
  if (!size) return size.error();
  if (*size == 0) return false;
  char last = '\n';
  const auto got = file.read(std::as_writable_bytes(std::span(&last, 1)), *size - 1);
  if (!got) return got.error();
  return last != '\n';
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path, const std::string& feed) {
  auto file = KeptFile::open("ledger", path);
  if (!file) return file.error();
  const auto cut_off = is_cut_off(**file);
  if (!cut_off) return cut_off.error();
  std::unique_ptr<Ledger> ledger(new Ledger(feed, std::move(*file)));
  if (*cut_off) {
    if (auto ended = ledger->write_line("\n"); !ended) return ended.error();
  }
  return ledger;
}

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
  return file_->write(std::as_bytes(std::span(line)));
}

}  // namespace batchwright
