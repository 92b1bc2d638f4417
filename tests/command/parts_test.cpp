#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/integration/daemon_process.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

/// A folder of sounds in two languages, and what is made of it.
class Sounds {
 public:
  explicit Sounds(int files) {
    for (int i = 0; i < files; ++i) add((i % 2 == 0 ? "en/" : "fr/") + std::to_string(i));
  }

  void add(const std::string& name) const {
    write_file(folder_ / "in" / (name + ".wav"),
               wav(tone(1600 + 16 * (std::hash<std::string>()(name) % 100)), {16000, 1}));
  }
  fs::path in() const { return folder_ / "in"; }
  fs::path parts() const { return folder_ / "parts"; }
  fs::path part(const std::string& name) const { return parts() / name; }
  fs::path path(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> words(const std::vector<std::string>& options) const {
    std::vector<std::string> all = {program("batchwright"), "ingest", "audio", in().string(),
                                    "--label-from-folder"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  /// One part, as "0/3".
  Finished ingest(const std::string& part, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"--into", parts().string(), "--part", part});
    return run(words(options));
  }
  void ingest_all(int count) const {
    for (int i = count - 1; i >= 0; --i) {  // in any order
      const Finished done = ingest(std::to_string(i) + "/" + std::to_string(count));
      REQUIRE_MESSAGE(done.code == 0, done.err);
    }
  }
  Finished gather(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {program("batchwright"), "gather", parts().string()});
    return run(options);
  }
  /// Content of what one ingest makes.
  std::string content_of_one() const {
    const Finished done = run(words({"--into", path("one").string()}));
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return content_of(path("one"));
  }
  static std::string content_of(const fs::path& dataset) {
    const Finished shown = run({program("batchwright"), "inspect", dataset.string(), "--json"});
    REQUIRE_MESSAGE(shown.code == 0, shown.err);
    return std::string(boost::json::parse(shown.out).at("content").as_string());
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("command: parts that are gathered are what one ingest makes") {
  for (const int count : {1, 3, 11}) {  // 11: more than files
    CAPTURE(count);
    const Sounds sounds(7);
    sounds.ingest_all(count);
    const std::string one = sounds.content_of_one();
    const Finished done = sounds.gather({"--into", sounds.path("all").string()});
    CHECK_MESSAGE(done.code == 0, done.err);
    CHECK(contains(done.out, "7 sequences"));
    CHECK(contains(done.out, "content " + one));
    CHECK(Sounds::content_of(sounds.path("all")) == one);
    // As shards they are one dataset, too, in the same order.
    const Finished shards = sounds.gather();
    CHECK(contains(shards.out, "dataset = [\"" + sounds.part("part-00000-of-").string()));
    const auto told = boost::json::parse(sounds.gather({"--json"}).out);
    CHECK(told.at("parts").as_int64() == count);
    CHECK(told.at("sequences").as_int64() == 7);
    CHECK(told.at("dataset").as_array().size() == static_cast<std::size_t>(count));
  }
}

TEST_CASE("command: gather names parts that are missing, and those that are not finished") {
  const Sounds sounds(60);
  sounds.ingest_all(50);
  REQUIRE(sounds.gather().code == 0);
  fs::remove_all(sounds.part("part-00017-of-00050"));
  fs::remove(sounds.part("part-00031-of-00050") / "finished");
  const Finished refused = sounds.gather();
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err,
                         "of 50 parts these are missing: 17; not finished: 31. Run "
                         "ingest with --part NUMBER/50 --resume for each"),
                refused.err);
  // The one part again, alone; one that is finished is passed over.
  CHECK(sounds.ingest("17/50").code == 0);
  CHECK(sounds.ingest("31/50").code == 1);
  const Finished resumed = sounds.ingest("31/50", {"--resume"});
  CHECK(contains(resumed.out, "added 0 sequences"));
  CHECK(contains(resumed.out, "skipped"));
  CHECK(sounds.ingest("3/50", {"--resume"}).code == 0);
  const Finished again = sounds.ingest("3/50");
  CHECK_MESSAGE(contains(again.err, "part-00003-of-00050 is finished"), again.err);
  const Finished done = sounds.gather({"--into", sounds.path("all").string()});
  CHECK_MESSAGE(contains(done.out, "content " + sounds.content_of_one()), done.err);
}

TEST_CASE("command: gather refuses parts that are not of one ingest") {
  const Sounds sounds(6);
  CHECK(contains(sounds.gather().err, "parts: "));  // no such folder
  sounds.ingest_all(3);
  SUBCASE("another list of files") {
    sounds.add("en/late");
    const Finished finished = sounds.ingest("1/3", {"--resume"});
    CHECK_MESSAGE(contains(finished.err, "is finished, of a list of 6 files; this one has 7"),
                  finished.err);
    fs::remove_all(sounds.part("part-00001-of-00003"));
    REQUIRE(sounds.ingest("1/3").code == 0);
    const Finished refused = sounds.gather();
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err, "was made from a list of 7 files"), refused.err);
  }
  SUBCASE("other settings") {
    fs::remove_all(sounds.part("part-00001-of-00003"));
    REQUIRE(sounds.ingest("1/3", {"--window-ms", "20"}).code == 0);
    const Finished refused = sounds.gather();
    CHECK_MESSAGE(contains(refused.err, "part-00001-of-00003 was made with window_ms = 20, "),
                  refused.err);
  }
  SUBCASE("another number of parts") {
    REQUIRE(sounds.ingest("1/4").code == 0);
    CHECK(contains(sounds.gather().err, "found 3 parts of 3 and 1 of 4"));
  }
  SUBCASE("more than was there when it was finished") {
    const auto more =
        sounds.words({"--into", sounds.part("part-00001-of-00003").string(), "--resume"});
    REQUIRE(run(more).code == 0);
    CHECK(contains(sounds.gather().err, "found 6 sequences; 2 were there when it was finished"));
  }
  SUBCASE("a file that is no mark") {
    std::ofstream(sounds.part("part-00001-of-00003") / "finished") << "yes\n";
    CHECK(contains(sounds.gather().err, "not what ingest --part writes"));
  }
  SUBCASE("a key twice") {
    const Sounds twice(0);
    twice.add("en/a");
    twice.add("fr/a");
    const auto part = [&twice](const char* number) {
      return run({program("batchwright"), "ingest", "audio", twice.in().string(), "--key",
                  "basename", "--into", twice.parts().string(), "--part", number});
    };
    REQUIRE(part("0/2").code == 0);
    REQUIRE(part("1/2").code == 0);
    CHECK(contains(twice.gather().err, "key \"a\" is in two parts, as sequence 0 and 1"));
    CHECK(contains(twice.gather({"--into", twice.path("all").string()}).err, "\"a\""));
  }
}

TEST_CASE("command: a gathering that was killed goes on, and only with its own dataset") {
  const Sounds sounds(9);
  sounds.ingest_all(3);
  // A prefix of the parts, as a killed call leaves it.
  const std::string all = sounds.path("all").string();
  fs::create_directories(all);
  fs::copy(sounds.part("part-00000-of-00003") / "data.mdb", all + "/data.mdb");
  CHECK(sounds.gather({"--into", all}).code == 1);
  const Finished done = sounds.gather({"--into", all, "--resume"});
  CHECK_MESSAGE(contains(done.out, "content " + sounds.content_of_one()), done.err);
  CHECK(sounds.gather({"--into", all, "--resume"}).code == 0);  // nothing to do
  const std::string other = sounds.path("other").string();
  fs::create_directories(other);
  fs::copy(sounds.part("part-00001-of-00003") / "data.mdb", other + "/data.mdb");
  const Finished refused = sounds.gather({"--into", other, "--resume"});
  CHECK_MESSAGE(contains(refused.err, "does not begin with the sequences of these parts"),
                refused.err);
}

TEST_CASE("command: a part whose files are all skipped is finished") {
  const Sounds sounds(2);
  for (const char* name : {"xx/1", "xx/2"}) {
    write_file(sounds.in() / (std::string(name) + ".wav"), "not sound");
  }
  CHECK(sounds.ingest("0/2", {"--on-error", "skip"}).code == 0);
  CHECK(sounds.ingest("1/2").code == 1);
  CHECK(sounds.ingest("1/2", {"--on-error", "skip"}).code == 0);
  CHECK(contains(sounds.gather({"--json"}).out, "\"sequences\":2"));
}

TEST_CASE("command: what is no part is a wrong call") {
  const Sounds sounds(1);
  for (const char* text : {"3/3", "1", "1/0", "-1/2", "0/100000", "a/b", "0/2x", ""}) {
    CAPTURE(text);
    const Finished refused = sounds.ingest(text);
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, "--part"));
  }
}
