#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// What the sound records of a journal say, behind one another.
struct JournalFigures {
  struct Held {
    std::uint64_t batch = 0;
    std::uint64_t owner = 0;
  };

  Fingerprint fingerprint;
  std::uint64_t epoch = 0;
  std::uint64_t given = 0;  ///< Times that a batch was given.
  std::uint64_t done = 0;
  std::uint64_t returned = 0;
  std::map<std::uint64_t, Held> out;              ///< By lease.
  std::map<std::uint64_t, std::uint64_t> undone;  ///< By batch, how often.
  std::vector<std::uint64_t> set_aside;           ///< Batches.
  std::vector<JournalRecord> records;

  void take(const JournalRecord& record);

 private:
  void end(const JournalRecord& record);
};

void JournalFigures::take(const JournalRecord& record) {
  using Kind = JournalRecord::Kind;
  records.push_back(record);
  switch (record.kind) {
    case Kind::plan: fingerprint = {record.first, record.second, record.third}; break;
    case Kind::epoch: epoch = record.second; break;
    case Kind::given:
      ++given;
      // A batch came back where it is given again.
      std::erase_if(out, [&](const auto& each) { return each.second.batch == record.second; });
      out[record.first] = {record.second, record.third};
      break;
    case Kind::done:
    case Kind::returned: end(record); break;
  }
}

void JournalFigures::end(const JournalRecord& record) {
  const auto held = out.find(record.first);
  if (held == out.end() || held->second.owner != record.third) return;
  const std::uint64_t batch = held->second.batch;
  out.erase(held);
  if (record.kind == JournalRecord::Kind::returned) {
    ++returned;
    ++undone[batch];
    return;
  }
  undone.erase(batch);
  ++done;
  if (record.second == JournalRecord::kSetAside) set_aside.push_back(batch);
}

struct ShownJournal {
  std::string path;
  JournalFigures figures;
  JournalContent content;
  std::string fault;  ///< Empty: a queue can go on with it.
};

Result<ShownJournal> read_journal(const std::filesystem::path& path) {
  const auto text = file_text(path);
  if (!text) return text.error();
  ShownJournal shown;
  shown.path = path.string();
  const ReadAt read = [&text](std::span<std::byte> into, std::uint64_t offset) {
    const std::size_t size = std::min<std::size_t>(into.size(), text->size() - offset);
    if (size != 0) std::memcpy(into.data(), text->data() + offset, size);
    return Result<std::size_t>(size);
  };
  const auto content =
      scan_journal(read, [&shown](const JournalRecord& record) { shown.figures.take(record); });
  if (!content) return content.error();
  shown.content = *content;
  const auto sound = check_journal(*content, shown.path);
  if (!sound) shown.fault = sound.error().message;
  if (text->empty()) shown.fault = shown.path + " is empty: its queue has not begun";
  return shown;
}

json::object journal_json(const ShownJournal& shown) {
  const JournalFigures& figures = shown.figures;
  const JournalContent& content = shown.content;
  json::array out;
  for (const auto& [lease, held] : figures.out) {
    out.push_back(json::object{
        {"batch", held.batch}, {"lease", lease}, {"owner", fmt::format("{:016x}", held.owner)}});
  }
  json::array undone;
  for (const auto& [batch, times] : figures.undone) {
    undone.push_back(json::object{{"batch", batch}, {"times", times}});
  }
  json::object all{{"journal", shown.path},
                   {"sound", shown.fault.empty()},
                   {"fingerprint", to_string(figures.fingerprint)},
                   {"epoch", figures.epoch},
                   {"given", figures.given},
                   {"done", figures.done},
                   {"returned", figures.returned},
                   {"out", std::move(out)},
                   {"undone", std::move(undone)},
                   {"set_aside", json::array(figures.set_aside.begin(), figures.set_aside.end())},
                   {"records", content.sound},
                   {"lost_records", content.lost},
                   {"damaged_records", content.damaged_records},
                   {"trailing_bytes", content.size - content.end}};
  if (content.damaged) all["damaged_from"] = *content.damaged;
  if (!shown.fault.empty()) all["fault"] = shown.fault;
  return all;
}

void print_journal(const ShownJournal& shown) {
  const JournalFigures& figures = shown.figures;
  const JournalContent& content = shown.content;
  fmt::print("journal      {}\n", shown.path);
  fmt::print("fingerprint  {}\n", to_string(figures.fingerprint));
  fmt::print("epoch        {}\n", figures.epoch);
  fmt::print("batches      {} done, {} out, given {} times, returned undone {} times\n",
             figures.done, figures.out.size(), figures.given, figures.returned);
  for (const auto& [lease, held] : figures.out) {
    fmt::print("out          batch {}, lease {}, owner {:016x}\n", held.batch, lease, held.owner);
  }
  for (const auto& [batch, times] : figures.undone) {
    fmt::print("undone       batch {}, {} times\n", batch, times);
  }
  for (const std::uint64_t batch : figures.set_aside) fmt::print("set aside    batch {}\n", batch);
  fmt::print("records      {} sound, {} lost in a power cut, {} damaged, {} bytes at the end\n",
             content.sound, content.lost, content.damaged_records, content.size - content.end);
}

Error not_written(const std::filesystem::path& into) {
  return {ErrorCode::io_error, fmt::format("{}: {}", into.string(), std::strerror(errno))};
}

/// All that is sound, in order. A record whose batch has lost another record stays true: what is
/// not known to be done is given again.
Result<void> salvage(const ShownJournal& shown, const std::filesystem::path& into) {
  if (!shown.content.has_plan || !shown.content.has_epoch || shown.content.unknown) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("nothing can be salvaged: {}", shown.fault)};
  }
  const Descriptor file(::open(into.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  if (!file) return not_written(into);
  auto bytes = std::as_bytes(std::span(shown.figures.records));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return not_written(into);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) != 0) return not_written(into);
  return {};
}

}  // namespace

int run_journal(const JournalOptions& options) {
  const auto shown = read_journal(options.journal);
  if (!shown) return fail(shown.error());
  if (!options.salvage.empty()) {
    if (auto written = salvage(*shown, options.salvage); !written) return fail(written.error());
  }
  if (options.json) {
    print_json_line(journal_json(*shown));
  } else {
    print_journal(*shown);
  }
  if (shown->fault.empty() || !options.salvage.empty()) return kDone;
  return fail({ErrorCode::corrupt_record, shown->fault});
}

}  // namespace batchwright
