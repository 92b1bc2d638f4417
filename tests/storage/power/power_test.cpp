// Loss of power at each moment of writing: what a writer has given to the disk is recorded, and the
// dataset is looked at as each order of what had not reached the disk would have left it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"
#include "tests/storage/power/keyed_values.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSector = 512;  // what a disk writes whole
constexpr std::uint64_t kUntil = 240;

struct Note {
  char kind = 0;
  std::uint64_t offset = 0;
  std::string bytes;
};

std::string whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Note> notes_in(const std::string& log) {
  std::vector<Note> notes;
  for (std::size_t at = 0; at < log.size();) {
    Note note{log[at], 0, {}};
    std::uint64_t size = 0;
    std::memcpy(&note.offset, log.data() + at + 1, sizeof note.offset);
    std::memcpy(&size, log.data() + at + 9, sizeof size);
    note.bytes = log.substr(at + 17, size);
    at += 17 + size;
    notes.push_back(std::move(note));
  }
  return notes;
}

/// A file as far as it has reached the disk, and what is on its way.
class Disk {
 public:
  void write(const Note& note) { pending_.push_back(note); }
  void write_through(const Note& note) { put(durable_, note); }
  void sync() {
    for (const Note& note : pending_) put(durable_, note);
    pending_.clear();
  }

  /// The file as a loss of power might leave it: with none, all, each prefix, all except for each
  /// one, and each one alone of what is on its way; and of `now`, which is being written through,
  /// nothing, or some sectors.
  std::set<std::string> images(const Note* now) const {
    std::set<std::string> images;
    const std::size_t count = pending_.size();
    for (std::size_t i = 0; i <= count; ++i) {
      images.insert(with([i](std::size_t each) { return each < i; }, now));
      images.insert(with([i](std::size_t each) { return each != i; }, now));
      images.insert(with([i](std::size_t each) { return each == i; }, now));
    }
    if (now == nullptr) return images;
    for (std::size_t sectors = 0; sectors * kSector < now->bytes.size(); ++sectors) {
      Note torn = *now;
      torn.bytes.resize(sectors * kSector);
      images.insert(with([](std::size_t) { return true; }, &torn));
      images.insert(with([](std::size_t) { return false; }, &torn));
    }
    return images;
  }

 private:
  static void put(std::string& file, const Note& note) {
    if (note.bytes.empty()) return;
    const std::size_t end = note.offset + note.bytes.size();
    if (file.size() < end) file.resize(end);
    file.replace(note.offset, note.bytes.size(), note.bytes);
  }
  template <class Chosen>
  std::string with(Chosen chosen, const Note* now) const {
    std::string file = durable_;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (chosen(i)) put(file, pending_[i]);
    }
    if (now != nullptr) put(file, *now);
    return file;
  }

  std::string durable_;
  std::vector<Note> pending_;
};

/// What the program writes, called with these words; it tells the ledger of each commit.
std::vector<Note> recorded(const TemporaryFolder& folder, const std::vector<std::string>& words) {
  const std::string log = (folder / "log").string();
  std::vector<std::string> command{
      "/usr/bin/env", std::string("LD_PRELOAD=") + BATCHWRIGHT_RECORDER, "RECORD_TO=" + log,
      "RECORD_ACKS=" + (folder / "ledger").string()};
  command.insert(command.end(), words.begin(), words.end());
  const Finished done = run(command);
  REQUIRE_MESSAGE(done.code == 0, done.err);
  return notes_in(whole(log));
}

/// The number of sequences after each commit; 0 before the first.
std::vector<std::uint64_t> commits(const std::vector<Note>& notes) {
  std::vector<std::uint64_t> counts{0};
  constexpr std::string_view kKey = "\"sequences\":";
  for (const Note& note : notes) {
    if (note.kind != 'a') continue;
    counts.push_back(std::stoull(note.bytes.substr(note.bytes.find(kKey) + kKey.size())));
  }
  return counts;
}

/// Judges the images of one run.
class Judge {
 public:
  explicit Judge(std::vector<std::uint64_t> counts) : counts_(std::move(counts)) {}

  void named() { named_ = true; }
  void acknowledged() { ++acknowledged_; }
  void look_at(const std::set<std::string>& images) {
    if (!named_) return;  // the file is not the dataset's yet
    for (const std::string& image : images) {
      if (seen_.insert(std::hash<std::string>()(image)).second) look_at(image);
    }
  }
  std::size_t looks() const { return seen_.size(); }

 private:
  void look_at(const std::string& image) {
    const TemporaryFolder folder;
    const fs::path dataset = folder / "data";
    fs::create_directory(dataset);
    std::ofstream(dataset / "data.mdb", std::ios::binary) << image;
    CAPTURE(acknowledged_);
    const auto report = verify_dataset({dataset});
    // Before the first commit there is nothing that could be read, or lost.
    if (report || acknowledged_ > 0) {
      REQUIRE_MESSAGE(report, report.error().message);
      CHECK(report->sound());
      const std::uint64_t next = counts_[std::min(acknowledged_ + 1, counts_.size() - 1)];
      CHECK((report->sequences == counts_[acknowledged_] || report->sequences == next));
    }
    go_on(dataset);
  }

  /// The writer takes the dataset up where it is.
  static void go_on(const fs::path& dataset) {
    const Finished done =
        run({program("chaos_writer"), dataset.string(), std::to_string(kUntil), "0"});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    const auto report = verify_dataset({dataset});
    REQUIRE_MESSAGE(report, report.error().message);
    CHECK(report->sound());
    CHECK(report->sequences >= kUntil);
  }

  std::vector<std::uint64_t> counts_;
  std::size_t acknowledged_ = 0;
  bool named_ = false;
  std::set<std::size_t> seen_;
};

/// Judges the images of a store that keyed_writer writes.
class StoreJudge {
 public:
  void named() {}
  void acknowledged() { ++acknowledged_; }
  void look_at(const std::set<std::string>& images) {
    for (const std::string& image : images) {
      if (acknowledged_ != 0 && seen_.insert(std::hash<std::string>()(image)).second)
        look_at(image);
    }
  }
  std::size_t looks() const { return seen_.size(); }

 private:
  void look_at(const std::string& image) const {
    const TemporaryFolder folder;
    std::ofstream(folder / "data.mdb", std::ios::binary) << image;
    CAPTURE(acknowledged_);
    const auto store = KeyedStore::open("store", folder / "", kKeyedTables, true);
    REQUIRE_MESSAGE(store, store.error().message);
    std::uint64_t last = 0;
    std::map<std::uint64_t, std::string> found;
    REQUIRE((*store)->read(0, [&last](std::uint64_t, std::span<const std::byte> value) {
      std::memcpy(&last, value.data(), sizeof last);
      return Result<void>();
    }));
    REQUIRE((*store)->read(1, [&found](std::uint64_t key, std::span<const std::byte> value) {
      found[key].assign(reinterpret_cast<const char*>(value.data()), value.size());
      return Result<void>();
    }));
    CHECK((last == acknowledged_ || last == acknowledged_ + 1));
    std::map<std::uint64_t, std::string> expected;
    for (std::uint64_t i = last < kKeyedKept ? 1 : last - kKeyedKept + 1; i <= last; ++i) {
      expected[i] = keyed_value(i);
    }
    CHECK(found == expected);
  }

  std::uint64_t acknowledged_ = 0;
  std::set<std::size_t> seen_;
};

/// Has the judge look at each state of the disk that a loss of power might leave.
template <class SomeJudge>
void look_at_all(const std::vector<Note>& notes, SomeJudge& judge) {
  Disk disk;
  for (const Note& note : notes) {
    switch (note.kind) {
      case 'w': disk.write(note); break;
      case 's':
        judge.look_at(disk.images(nullptr));
        disk.sync();
        judge.look_at(disk.images(nullptr));
        break;
      case 'd':
        judge.look_at(disk.images(&note));
        disk.write_through(note);
        judge.look_at(disk.images(nullptr));
        break;
      case 'r':
        judge.named();
        judge.look_at(disk.images(nullptr));
        break;
      case 'a': judge.acknowledged(); break;
      default: FAIL("a note of no kind");
    }
  }
}

}  // namespace

TEST_CASE("power: a loss at each moment of writing leaves whole commits, and those acknowledged") {
  const TemporaryFolder folder;
  const std::vector<Note> notes =
      recorded(folder, {program("chaos_writer"), (folder / "data").string(), std::to_string(kUntil),
                        "0", (folder / "ledger").string()});
  Judge judge(commits(notes));
  look_at_all(notes, judge);
  const auto count = [&notes](char kind) {
    return std::count_if(notes.begin(), notes.end(),
                         [kind](const Note& note) { return note.kind == kind; });
  };
  MESSAGE(judge.looks(), " images of ", notes.size(), " notes: ", count('w'), " written, ",
          count('s'), " synced, ", count('d'), " written through, ", count('a'), " commits");
  // Everything that LMDB does to be durable went by here.
  CHECK(count('a') > 10);
  CHECK(count('s') >= count('a'));
  CHECK(count('d') >= count('a'));
  CHECK(judge.looks() >= 5 * static_cast<std::size_t>(count('a')));
}

TEST_CASE("power: a store of values by numbers has each write as a whole, or not at all") {
  const TemporaryFolder folder;
  const std::vector<Note> notes = recorded(
      folder, {program("keyed_writer"), (folder / "store").string(), (folder / "ledger").string()});
  StoreJudge judge;
  look_at_all(notes, judge);
  MESSAGE(judge.looks(), " images of ", notes.size(), " notes");
  CHECK(judge.looks() > 100);
}
