#include <doctest/doctest.h>

#include <cstring>

#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Audio in these folders, and --label-from-folder.
How labelled(const Place& place, const std::vector<std::string>& folders) {
  for (const std::string& name : folders) write_file(place.in(name + "/1.wav"), wav(tone(300)));
  How how;
  how.resume = true;
  how.annotations.label_from_folder = true;
  return how;
}

std::vector<std::string> categories(const Place& place) {
  return place.snapshot()->schema().fields[1].categories;
}

std::int32_t label(const Place& place, std::uint64_t ordinal) {
  const auto snapshot = place.snapshot();
  std::int32_t value = -1;
  std::memcpy(&value, snapshot->record(Ordinal{ordinal})->field(1).bytes.data(), sizeof value);
  return value;
}

std::string failure(const Place& place, const How& how) {
  const auto report = place.take(how, true);
  if (!report) return report.error().message;
  return report->failure ? report->failure->message : "";
}

}  // namespace

TEST_CASE("storage: a new class is appended after those of the dataset") {
  const Place place;
  CHECK(failure(place, labelled(place, {"it", "ru"})).empty());
  const std::uint64_t before = place.snapshot()->content();
  CHECK(failure(place, labelled(place, {"en"})).empty());
  CHECK(categories(place) == Keys{"it", "ru", "en"});
  CHECK(label(place, 2) == 2);
  const auto report = verify_dataset({place.out()});
  REQUIRE(report);
  CHECK(report->sound());
  Catalog catalog;
  const auto dataset = catalog.open({place.out()});
  REQUIRE(dataset);
  CHECK((*dataset)->snapshot_at(before));
}

TEST_CASE("storage: labels can be numbered by a list, and others are refused") {
  const Place place;
  How how = labelled(place, {"en", "it"});
  how.annotations.label_sets = {{"", {"it", "fr"}, "labels l.txt"}};
  CHECK(failure(place, how) ==
        place.in("en/1.wav").string() +
            ": key \"en/1\": label \"en\" is not in labels l.txt, which has 2: it, fr");
  how.on_error = OnError::skip;
  CHECK(failure(place, how).empty());
  CHECK(categories(place) == Keys{"it", "fr"});
  CHECK(label(place, 0) == 0);
}

TEST_CASE("storage: labels can be numbered as another dataset's") {
  const Place train;
  CHECK(failure(train, labelled(train, {"en", "it", "ru"})).empty());
  const Place valid;
  How how = labelled(valid, {"it", "ru"});
  const auto sets = label_sets_of(train.out());
  REQUIRE_MESSAGE(sets, sets.error().message);
  how.annotations.label_sets = *sets;
  CHECK(failure(valid, how).empty());
  CHECK(categories(valid) == Keys{"en", "it", "ru"});
  CHECK(label(valid, 0) == 1);
}

TEST_CASE("storage: a list of labels that begins in another way than the dataset's is refused") {
  const Place place;
  CHECK(failure(place, labelled(place, {"en", "it"})).empty());
  How how = labelled(place, {"ru"});
  how.annotations.label_sets = {{"label", {"en", "ru", "it"}, "labels l.txt"}};
  CHECK(contains(failure(place, how),
                 "has other fields: field \"label\": category 1 is \"it\", not \"ru\""));
  how.annotations.label_sets = {{"label", {"en", "it", "ru"}, "labels l.txt"}};
  CHECK(failure(place, how).empty());
  CHECK(categories(place) == Keys{"en", "it", "ru"});
}

TEST_CASE("storage: shards whose labels begin alike are one dataset with all labels") {
  const Place first;
  CHECK(failure(first, labelled(first, {"en"})).empty());
  const Place second;
  CHECK(failure(second, labelled(second, {"en", "it"})).empty());
  const Place other;
  CHECK(failure(other, labelled(other, {"it"})).empty());
  Catalog catalog;
  const auto joined = catalog.open({first.out(), second.out()});
  REQUIRE_MESSAGE(joined, joined.error().message);
  CHECK((*joined)->schema().fields[1].categories == Keys{"en", "it"});
  const auto refused = catalog.open({first.out(), other.out()});
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message, "category 0 is \"it\", not \"en\""));
}

TEST_CASE("storage: files of label sets are one name a line") {
  const TemporaryFolder folder;
  write_file(folder / "l.txt", "\xEF\xBB\xBFit\r\nen\n\nru\n");
  const auto set = read_label_set(folder / "l.txt");
  REQUIRE(set);
  CHECK(set->names == Keys{"it", "en", "ru"});
  write_file(folder / "l.txt", "it\nen\nit\n");
  CHECK(contains(read_label_set(folder / "l.txt").error().message,
                 "l.txt: line 3: \"it\" was there before"));
  write_file(folder / "l.txt", "\n");
  CHECK(contains(read_label_set(folder / "l.txt").error().message, "l.txt: no name in it"));
}

TEST_CASE("storage: a set of labels that goes with no field is refused") {
  const Place place;
  How how = labelled(place, {"en"});
  how.annotations.label_sets = {{"speaker", {"ann"}, "labels l.txt"}};
  CHECK(failure(place, how) ==
        "labels l.txt: there is no field \"speaker\"; fields of labels: label");
}

TEST_CASE("storage: labels come from tables by key") {
  const Place place;
  How how = labelled(place, {"en", "it"});
  how.annotations.label_from_folder = false;
  write_file(place.folder / "utt2spk", "it/1 bob\nen/1 ann\nfr/1 bob\n");
  how.annotations.label_tables = {{"speaker", place.folder / "utt2spk"}};
  CHECK(failure(place, how).empty());
  CHECK(categories(place) == Keys{"ann", "bob"});
  CHECK(label(place, 1) == 1);
}
