#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "storage/ingest/files/kaldi_table.h"
#include "storage/ingest/files/kaldi_value.h"
#include "storage/ingest/files/npy.h"
#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/process.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::string data(const std::string& name) { return BATCHWRIGHT_TEST_DATA "/kaldi/" + name; }

/// Values of all keys of a table, one after the other, and the shape of each.
struct Values {
  std::vector<double> all;
  std::vector<std::vector<std::uint64_t>> shapes;
};

void append(const Array& array, std::vector<double>& all) {
  const std::size_t size = element_bytes(array.element);
  for (std::size_t at = 0; at < array.bytes.size(); at += size) {
    const std::byte* from = array.bytes.data() + at;
    double wide = 0;
    float narrow = 0;
    std::int32_t whole = 0;
    switch (array.element) {
      case Element::float64: std::memcpy(&wide, from, 8); break;
      case Element::float32:
        std::memcpy(&narrow, from, 4);
        wide = narrow;
        break;
      default: std::memcpy(&whole, from, 4); wide = whole;
    }
    all.push_back(wide);
  }
}

Values read_table(const std::string& name) {
  const auto table = KaldiTable::read(name);
  REQUIRE_MESSAGE(table, table.error().message);
  Values values;
  for (const std::string& key : table->keys()) {
    const auto array = table->value(key);
    REQUIRE_MESSAGE(array, array.error().message);
    values.shapes.push_back(array->shape);
    append(*array, values.all);
  }
  return values;
}

std::vector<double> expected(const std::string& name) {
  const auto array = read_npy(data(name + ".expected.values.npy"));
  REQUIRE_MESSAGE(array, array.error().message);
  std::vector<double> values;
  append(*array, values);
  return values;
}

void check_values(const std::string& table, const std::string& name, double tolerance) {
  CAPTURE(table);
  const Values found = read_table(table);
  const std::vector<double> wanted = expected(name);
  REQUIRE(found.all.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(found.all[i] - wanted[i]) <= tolerance);
  }
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Why a table of these lines is refused.
std::string table_refusal(const std::string& lines) {
  const TemporaryFolder folder;
  write_file(folder / "t.scp", lines);
  const auto table = KaldiTable::read(folder / "t.scp");
  REQUIRE_FALSE(table);
  CHECK(table.error().code == ErrorCode::invalid_argument);
  return table.error().message.substr(std::string(folder / "t.scp").size());
}

/// Why the value of `key` cannot be had, with these lines as a table.
std::string refusal_of(const std::string& key, const std::string& lines) {
  const TemporaryFolder folder;
  write_file(folder / "t.scp", lines);
  const auto table = KaldiTable::read(folder / "t.scp");
  REQUIRE_MESSAGE(table, table.error().message);
  const auto value = table->value(key);
  REQUIRE_FALSE(value);
  return value.error().message;
}

}  // namespace

TEST_CASE("storage: Kaldi's matrices and vectors have the values that Kaldi's readers give") {
  for (const char* name : {"fm", "dm", "cm2", "cm2_signed16", "cm3", "int_vector", "text_fm",
                           "text_int_vector", "feats_range"}) {
    check_values(data(name) + ".scp", name, 0);
  }
  // The order of operations is not laid down for CM, and the expected vectors have six digits.
  for (const char* name : {"cm", "cm_auto", "feats_mixed", "float_vector", "text_float_vector"}) {
    check_values(data(name) + ".scp", name, 1e-5);
  }
}

TEST_CASE("storage: a Kaldi archive is read without an scp file") {
  for (const char* name : {"fm", "cm", "cm3", "int_vector", "text_fm", "text_int_vector"}) {
    check_values(data(name) + ".ark", name, 1e-5);
  }
}

TEST_CASE("storage: Kaldi's shapes are rows and columns, or elements") {
  const Values matrices = read_table(data("fm.scp"));
  CHECK(matrices.shapes[0] == std::vector<std::uint64_t>{5, 6});
  const Values ranges = read_table(data("feats_range.scp"));
  CHECK(ranges.shapes[0] == std::vector<std::uint64_t>{3, 6});
  CHECK(ranges.shapes[2] == std::vector<std::uint64_t>{10, 3});
  CHECK(read_table(data("int_vector.scp")).shapes.back() == std::vector<std::uint64_t>{0});
}

TEST_CASE("storage: a Kaldi value that is cut anywhere is refused") {
  for (const char* name : {"fm", "dm", "cm", "cm2", "cm3", "float_vector", "int_vector", "text_fm",
                           "text_float_vector", "text_int_vector"}) {
    CAPTURE(name);
    const auto archive = read_file(data(std::string(name) + ".ark")).substr(11);
    const auto size = kaldi_value_bytes(bytes_of(archive));
    REQUIRE(size);
    const std::string whole = archive.substr(0, *size);
    REQUIRE(parse_kaldi_value(bytes_of(whole)));
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      const std::vector<char> part(whole.begin(), whole.begin() + static_cast<long>(cut));
      const auto asked = kaldi_value_bytes(std::as_bytes(std::span(part)));
      CAPTURE(cut);
      CHECK((!asked || *asked > cut));
    }
  }
}

TEST_CASE("storage: a Kaldi archive that is cut is refused with its key") {
  const TemporaryFolder folder;
  const std::string whole = read_file(data("fm.ark"));
  write_file(folder / "fm.ark", whole.substr(0, 600));
  write_file(folder / "fm.scp", read_file(data("fm.scp")));
  const auto table = KaldiTable::read(folder / "fm.scp");
  REQUIRE(table);
  CHECK(table->value("spk1-utt-a"));
  const auto cut = table->value("spk2-utt-a");
  REQUIRE_FALSE(cut);
  CHECK(contains(cut.error().message, "fm.scp: key \"spk2-utt-a\": "));
  CHECK(contains(cut.error().message, "fm.ark:521: cut off"));
  CHECK(contains(table->value("spk3-utt-a").error().message, "offset 4365 of a file of 600 bytes"));
  CHECK(
      contains(KaldiTable::read(folder / "fm.ark").error().message, "key \"spk2-utt-a\": cut off"));
}

TEST_CASE("storage: Kaldi tables that cannot be read are refused by line and reason") {
  CHECK(contains(KaldiTable::read(data("feats_command.scp")).error().message,
                 "feats_command.scp: line 2 is a command (ends in |), which is never run"));
  CHECK(contains(table_refusal("a b.ark.gz\n"), ": line 1 is compressed by gzip"));
  CHECK(contains(table_refusal("a\n"), ": line 1 is not key, blank, place"));
  CHECK(contains(table_refusal("a x:1\nb x:2\na x:3\n"), ": line 3: key \"a\" was there before"));
  CHECK(contains(table_refusal("a x:1[3:2]\n"), ": line 1 is range [3:2]; allowed:"));
  CHECK(contains(table_refusal(""), ": no key in it"));
  CHECK(contains(KaldiTable::read("/nowhere").error().message, "/nowhere: No such file"));
}

TEST_CASE("storage: what is no Kaldi matrix or vector is refused by key") {
  const std::string fm = data("fm.ark");
  CHECK(contains(refusal_of("a", "a " + fm + ":12\n"), "not a Kaldi matrix or vector"));
  CHECK(contains(refusal_of("a", "a " + fm + ":11[0:8]\n"), "range 0:8 of 5 rows; the last is 4"));
  CHECK(contains(refusal_of("a", "a " + fm + ":11[5:6]\n"), "range 5:6 of 5 rows; the last is 4"));
  CHECK(contains(refusal_of("a", "a " + fm + ":11[0:1,2:6]\n"), "range 2:6 of 6 columns"));
  CHECK(contains(refusal_of("a", "a /nowhere.ark:0\n"), "/nowhere.ark:0: No such file"));
  CHECK(contains(refusal_of("b", "a " + fm + ":11\n"), "no key \"b\""));
  CHECK(contains(refusal_of("a", "a " + data("int_pairs.ark") + ":11\n"),
                 "pairs or lists of integers"));
  CHECK(
      contains(refusal_of("a", "a " + data("text") + ":11\n"), "\"one\" is not a 32-bit integer"));
}

TEST_CASE("storage: ranges of Kaldi are read as Kaldi reads them") {
  using Part = KaldiRange::Part;
  const auto both = parse_kaldi_range("0:9,2:4");
  REQUIRE(both);
  CHECK(both->rows == Part{0, 9});
  CHECK(both->columns == Part{2, 4});
  CHECK_FALSE(parse_kaldi_range(",2:4")->rows);
  CHECK_FALSE(parse_kaldi_range(":,2:4")->rows);
  CHECK_FALSE(parse_kaldi_range("1:2")->columns);
  for (const char* wrong : {"1", "2:1", "a:b", "1:2:3", "-1:2", "1:2,3"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_kaldi_range(wrong));
  }
}

TEST_CASE("storage: Kaldi's tables become fields by name, and doubles floats") {
  const Place place;
  write_file(place.in("ali.ark"), "spk1-utt-a 1 2 3 4 5 \nspk1-utt-b 6 \nspk9 1 \n");
  write_file(place.in("words.ark"), "spk1-utt-a 7 8 \nspk1-utt-b 9 \n");
  KaldiSourceOptions options;
  options.tables = {
      {"features", data("dm.scp")}, {"ali", place.in("ali.ark")}, {"words", place.in("words.ark")}};
  const auto input = kaldi_source(options);
  REQUIRE_MESSAGE(input, input.error().message);
  CHECK(input->unmatched.at("ali") == 1);
  How how;
  how.on_error = OnError::skip;
  const auto report = place.take(how, *input->source, input->files);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report->figures.added == 2);
  REQUIRE(report->skipped.size() == 4);
  CHECK(contains(report->skipped[0], "ali.ark: no key \"spk1-utt-c\""));
  const auto snapshot = place.snapshot();
  const auto& fields = snapshot->schema().fields;
  REQUIRE(fields.size() == 3);
  CHECK(fields[0].dtype == DType::float32);
  CHECK(fields[0].shape == std::vector<std::uint32_t>{6});
  CHECK(fields[1].kind == FieldKind::aligned);
  CHECK(fields[2].kind == FieldKind::independent);
  CHECK(fields[2].dtype == DType::int32);
  CHECK(snapshot->field_lengths(2)[0] == 2);
}

TEST_CASE("storage: a field that was taken as aligned and is not is refused with a way out") {
  const Place place;
  write_file(place.in("ali.ark"), "spk1-utt-a 1 2 3 4 5 \nspk1-utt-b 6 7 \n");
  write_file(place.in("two.scp"),
             "spk1-utt-a " + data("fm.ark") + ":11\nspk1-utt-b " + data("fm.ark") + ":157\n");
  KaldiSourceOptions options;
  options.tables = {{"features", place.in("two.scp")}, {"ali", place.in("ali.ark")}};
  options.arrays.kinds = {{"ali", FieldKind::aligned}};
  const auto input = kaldi_source(options);
  REQUIRE_MESSAGE(input, input.error().message);
  const auto report = place.take({}, *input->source, input->files);
  REQUIRE(report);
  REQUIRE(report->failure);
  CHECK(
      contains(report->failure->message,
               "ali.ark: key \"spk1-utt-b\": field \"ali\" has 2 frames, \"features\" has 1; they "
               "are aligned, or --kind ali=independent"));
}

TEST_CASE("storage: sizes of a Kaldi matrix whose product wraps are refused") {
  // Times 8 bytes they are 2^64 + 64.
  const std::int32_t rows = (1 << 30) + 65538;
  const std::int32_t columns = std::numeric_limits<std::int32_t>::max() - 131067;
  std::string value("\0BDM \4", 6);
  value.resize(15 + 64, '?');
  value[10] = '\4';
  std::memcpy(value.data() + 6, &rows, 4);
  std::memcpy(value.data() + 11, &columns, 4);
  const TemporaryFolder folder;
  write_file(folder / "a.ark", "key " + value);
  for (const char* range : {"", "[100000:100001]", "[1:2,0:10]", "[0:0,67200:167200]"}) {
    CAPTURE(range);
    CHECK(contains(refusal_of("key", "key " + (folder / "a.ark").string() + ":4" + range + "\n"),
                   "sizes of 1073807362 x 2147352580"));
  }
  const auto asked = kaldi_value_bytes(bytes_of(value));
  CHECK_FALSE(asked);
  CHECK_FALSE(parse_kaldi_value(bytes_of(value)));
}

TEST_CASE("storage: rows of a Kaldi matrix without columns are refused, however it is stored") {
  const std::int32_t rows = 542393344;
  const std::string plain =
      "\4" + std::string(reinterpret_cast<const char*>(&rows), 4) + "\4" + std::string(4, '\0');
  const std::string compressed = std::string(8, '\1') +
                                 std::string(reinterpret_cast<const char*>(&rows), 4) +
                                 std::string(4, '\0');
  for (const std::string token : {"FM ", "DM ", "CM ", "CM2 ", "CM3 "}) {
    CAPTURE(token);
    const std::string value =
        std::string("\0B", 2) + token + (token[0] == 'C' ? compressed : plain);
    CHECK_FALSE(kaldi_value_bytes(bytes_of(value)));
    const auto parsed = parse_kaldi_value(bytes_of(value));
    REQUIRE_FALSE(parsed);
    CHECK(contains(parsed.error().message, "sizes of 542393344 x 0"));
  }
}

TEST_CASE("storage: a range of Kaldi may end up to three rows past the last, and is cut there") {
  const std::string fm = data("fm.ark");
  const TemporaryFolder folder;
  write_file(folder / "v.ark", "v  [ 1 2 3 ]\n");
  write_file(folder / "t.scp", "whole " + fm + ":11\nrows " + fm + ":11[2:7]\nboth " + fm +
                                   ":11[4:5,1:2]\nv " + (folder / "v.ark").string() + ":2[1:5]\n");
  const auto table = KaldiTable::read(folder / "t.scp");
  REQUIRE(table);
  CHECK(table->value("whole")->remark.empty());
  const auto rows = table->value("rows");
  REQUIRE_MESSAGE(rows, rows.error().message);
  CHECK(rows->shape == std::vector<std::uint64_t>{3, 6});
  CHECK_FALSE(rows->remark.empty());
  CHECK(table->value("both")->shape == std::vector<std::uint64_t>{1, 2});
  CHECK(table->value("v")->shape == std::vector<std::uint64_t>{2});
  // The columns are exact.
  CHECK(contains(refusal_of("a", "a " + fm + ":11[0:1,5:6]\n"), "range 5:6 of 6 columns"));
  const Place place;
  write_file(place.in("d.scp"), "a " + data("dm.ark") + ":11[0:6]\n");
  KaldiSourceOptions options;
  options.tables = {{"features", place.in("d.scp")}};
  const auto input = kaldi_source(options);
  REQUIRE_MESSAGE(input, input.error().message);
  const auto report = place.take({}, *input->source, input->files);
  REQUIRE(report);
  REQUIRE(report->remarks.size() == 1);
  CHECK(contains(report->remarks[0], "1 sequences: range ends up to three rows after the last"));
  CHECK(contains(report->remarks[0], "d.scp: key \"a\""));
}

TEST_CASE("storage: Kaldi's tables may begin with a byte order mark and end lines with CR") {
  const TemporaryFolder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const std::string place = data("fm.ark") + ":11";
  const auto keys = [&](const char* name, const std::string& bytes) {
    write_file(folder / name, bytes);
    const auto table = KaldiTable::read(folder / name);
    REQUIRE_MESSAGE(table, table.error().message);
    for (const std::string& key : table->keys()) CHECK(table->value(key));
    return table->keys();
  };
  using Names = std::vector<std::string>;
  CHECK(keys("a.scp", mark + "utt " + place + "\r\nother " + place + "\r\n") ==
        Names{"utt", "other"});
  CHECK(keys("b.scp", "utt " + place + "\rother " + place + "\r") == Names{"utt", "other"});
  CHECK(keys("c.ark", mark + "utt  [ 1 2 ]\n") == Names{"utt"});
}

TEST_CASE("storage: a text matrix may begin in the line of its bracket") {
  const TemporaryFolder folder;
  write_file(folder / "t.ark",
             "u [ 1 2\n 3 4 ]\nv [ 5 6 ]\nw [\n 7 8 ]\nx [ 9\n]\ny [ 1 2\n 3 ]\n");
  const auto table = KaldiTable::read(folder / "t.ark");
  REQUIRE_MESSAGE(table, table.error().message);
  using Shape = std::vector<std::uint64_t>;
  CHECK(table->value("u")->shape == Shape{2, 2});
  CHECK(table->value("v")->shape == Shape{2});
  CHECK(table->value("w")->shape == Shape{1, 2});
  CHECK(table->value("x")->shape == Shape{1, 1});
  CHECK(contains(table->value("y").error().message, "row 1 has 1 columns, not 2"));
}
