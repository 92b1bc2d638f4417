#include "daemon/delivery/feed/queue/ledger.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <span>
#include <utility>

namespace batchwright {
namespace {

namespace json = boost::json;

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

/// The same after a reconnect, and in every feed.
std::string token_text(const ClientInfo& client) { return fmt::format("{:016x}", client.token); }

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path, const std::string& feed) {
  auto file = KeptFile::open("ledger", path);
  if (!file) return file.error();
  if (auto room = (*file)->check_room(); !room) return room.error();
  const auto cut_off = is_cut_off(**file);
  if (!cut_off) return cut_off.error();
  std::unique_ptr<Ledger> ledger(new Ledger(utf8(feed), std::move(*file)));
  if (*cut_off) {
    if (auto ended = ledger->write_line("\n"); !ended) return ended.error();
  }
  return ledger;
}

Result<void> Ledger::delivered(const Entry& entry, const EpochPlan& plan) {
  plan.rows(entry.id.index, rows_);
  json::array ordinals(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) ordinals[i] = rows_[i].ordinal;
  return write_object({{"event", "delivered"},
                       {"feed", feed_},
                       {"client", token_text(entry.client)},
                       {"pid", entry.client.pid},
                       {"subscription", entry.subscription.value},
                       {"lease", entry.lease.value},
                       {"epoch", entry.id.epoch.value},
                       {"step", entry.id.index.value / plan.world()},
                       {"index", entry.id.index.value},
                       {"rehearsal", entry.rehearsal},
                       {"ordinals", std::move(ordinals)}});
}

Result<void> Ledger::ended(const ClientInfo& client, LeaseNumber lease, std::string_view what) {
  return write_object({{"event", what},
                       {"feed", feed_},
                       {"client", token_text(client)},
                       {"pid", client.pid},
                       {"lease", lease.value}});
}

Result<void> Ledger::write_object(const json::object& object) const {
  return write_line(json::serialize(object) + "\n");
}

/// By one write(): lines of several daemons in one file do not mix.
Result<void> Ledger::write_line(const std::string& line) const {
  if (writer_ != nullptr) {
    writer_->put(file_, line);
    return {};
  }
  return file_->write(std::as_bytes(std::span(line)));
}

}  // namespace batchwright
