#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/planning/random_case.h"
#include "tests/planning/tables.h"

using namespace batchwright;

namespace {

const std::vector<std::uint32_t> kLengths = {10, 20, 30, 40, 50};

/// Sequences that are called a, b, c, ..., and one whose key looks like an ordinal's number.
OrderNames names() {
  return {kLengths.size(), [](std::string_view key) -> Result<std::optional<std::uint64_t>> {
            if (key == "3") return std::optional<std::uint64_t>(1);
            if (key.size() != 1 || key[0] < 'a' || key[0] > 'e') {
              return std::optional<std::uint64_t>();
            }
            return std::optional<std::uint64_t>(key[0] - 'a');
          }};
}

OrderRows rows_of(const std::string& text) {
  auto order = parse_order(text, "order.txt", names());
  REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  return *std::move(order);
}

std::string refusal(const std::string& text) {
  const auto order = parse_order(text, "order.txt", names());
  REQUIRE_FALSE(order);
  CHECK(order.error().code == ErrorCode::bad_configuration);
  return order.error().message;
}

PlanSettings with_order(PlanSettings settings, const std::string& text, const OrderNames& of) {
  settings.order = Order::file;
  settings.order_file = "order.txt";
  auto order = parse_order(text, "order.txt", of);
  REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  settings.order_rows = std::make_shared<const OrderRows>(*std::move(order));
  return settings;
}

PlanSettings with_order(std::initializer_list<std::string_view> texts, const std::string& text) {
  return with_order(testing::settings(texts), text, names());
}

EpochPlan planned(const PlanSettings& settings, std::span<const std::uint32_t> lengths = kLengths) {
  auto plan = plan_epoch(lengths, settings, Epoch{0});
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  return *std::move(plan);
}

std::string plan_refusal(const PlanSettings& settings) {
  const auto plan = plan_epoch(kLengths, settings, Epoch{0});
  REQUIRE_FALSE(plan);
  const auto bound = plan_bound(kLengths, settings);
  REQUIRE_FALSE(bound);
  CHECK(bound.error().message == plan.error().message);
  return plan.error().message;
}

std::vector<Row> batch_of(const EpochPlan& plan, std::uint64_t index) {
  std::vector<Row> rows;
  plan.rows(BatchIndex{index}, rows);
  return rows;
}

/// A batch as an order file has it.
std::string line_of(const EpochPlan& plan, std::uint64_t index) {
  std::string line;
  for (const Row& row : batch_of(plan, index)) {
    line += line.empty() ? "" : "\t";
    line += row.length == 0 ? "-"
                            : "#" + std::to_string(row.ordinal) + " " + std::to_string(row.start) +
                                  " " + std::to_string(row.length);
  }
  return line;
}

std::string file_of(const EpochPlan& plan) {
  std::string text;
  for (std::uint64_t index = 0; index < plan.batches(); ++index)
    text += line_of(plan, index) + "\n";
  return text;
}

void check_same(const EpochPlan& plan, const EpochPlan& other) {
  REQUIRE(plan.batches() == other.batches());
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    CAPTURE(index);
    const auto rows = batch_of(plan, index), others = batch_of(other, index);
    REQUIRE(rows.size() == others.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      CAPTURE(r);
      CHECK(rows[r].ordinal == others[r].ordinal);
      CHECK(rows[r].start == others[r].start);
      CHECK(rows[r].length == others[r].length);
      CHECK(rows[r].flags == others[r].flags);
      CHECK(rows[r].use == others[r].use);
    }
  }
}

}  // namespace

TEST_CASE("planning: an order file has rows of every form that its document shows") {
  const OrderRows order =
      rows_of("\xEF\xBB\xBF# a comment\r\n#\na\n#1\t#2 10 20\r\nc *0\t#4 0 50 *0.5\t-\n3 1 2");
  REQUIRE(order.rows.size() == 7);
  CHECK(order.line_starts == std::vector<std::uint32_t>{0, 1, 3, 6, 7});
  CHECK(order.line_numbers == std::vector<std::uint32_t>{3, 4, 5, 6});
  const auto is = [&order](std::size_t row, std::uint32_t ordinal, std::uint32_t start,
                           std::uint32_t frames) {
    const ListedRow& found = order.rows[row];
    return found.ordinal == ordinal && found.start == start && found.frames == frames;
  };
  CHECK(is(0, 0, 0, 0));
  CHECK(is(1, 1, 0, 0));
  CHECK(is(2, 2, 10, 20));
  CHECK(is(3, 2, 0, 0));
  CHECK(is(4, 4, 0, 50));
  CHECK_FALSE(order.rows[5].has_sequence());
  CHECK(is(6, 1, 1, 2));  // a key of digits is a key
  CHECK(order.weights == std::vector<float>{1, 1, 1, 0, 0.5F, 1, 1});
  CHECK(order.own_weights == std::vector<bool>{false, false, false, true, true, false, false});
  CHECK(order.sequences == 4);
  CHECK(order.rows_without == 1);
  CHECK(order.has_parts);
  CHECK_FALSE(order.repeats);
  CHECK(order.place_of(4) == "order file order.txt, line 5, row 2");
  CHECK(rows_of("a\nb\n").weights.empty());
  CHECK_FALSE(rows_of("a\nb\n").has_parts);
  CHECK(rows_of("a 0 3\tb\ta 0 4\n").repeats);
  CHECK_FALSE(rows_of("a 0 3\tb\ta 3 4\n").repeats);
}

TEST_CASE("planning: a fault of an order file is told with line, row and what is allowed") {
  const std::string form =
      "KEY or #ORDINAL, then START COUNT for a part, then *WEIGHT, with one space between; or - "
      "for "
      "no sequence";
  CHECK(refusal("a\nb\tzz\n") ==
        "order file order.txt, line 2: row 2: found key \"zz\", which no sequence has; allowed: a "
        "key of the dataset, or an ordinal, #0 to #4");
  CHECK(refusal("#5\n") ==
        "order file order.txt, line 1: row 1: found ordinal \"#5\"; allowed: #0 to #4");
  CHECK(refusal("#99999999999999999999999\n").find("found ordinal \"#9999") != std::string::npos);
  CHECK(refusal("#-1").find("found ordinal \"#-1\"") != std::string::npos);
  CHECK(refusal("#a").find("found ordinal \"#a\"") != std::string::npos);
  CHECK(refusal("##1").find("found ordinal \"##1\"") != std::string::npos);
  CHECK(refusal("a\n\nb\n") ==
        "order file order.txt, line 2: row 1: found nothing; allowed: " + form);
  CHECK(refusal("a\t\n").find("line 1: row 2: found nothing") != std::string::npos);
  CHECK(refusal("a 1\n").find("row 1: found \"a 1\"; allowed: " + form) != std::string::npos);
  for (const char* text :
       {"a  1 2", " a", "a ", "a 1 2 ", "a 1 2 3", "a 1 2 *1 *1", "- *0", "- 0 1"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("line 1: row 1: found ") != std::string::npos);
  }
  CHECK(refusal("a -1 2").find("found start \"-1\"; allowed: frames from 0 to 2147483646") !=
        std::string::npos);
  CHECK(refusal("a 2147483647 1").find("found start \"2147483647\"") != std::string::npos);
  CHECK(refusal("a 1 0").find("found count \"0\"; allowed: frames from 1 to 2147483646") !=
        std::string::npos);
  CHECK(refusal("a 1 2147483647").find("found count \"2147483647\"") != std::string::npos);
  CHECK(refusal("a 1 x").find("found count \"x\"") != std::string::npos);
  for (const char* weight : {"*", "*x", "*nan", "*inf", "*1e39", "**1"}) {
    CAPTURE(weight);
    CHECK(refusal(std::string("a ") + weight).find("found weight \"") != std::string::npos);
  }
  CHECK(
      refusal("a\n\xFF\n") ==
      "order file order.txt, line 2: found bytes that are not UTF-8; allowed: UTF-8, and #ORDINAL "
      "for such a key");
  CHECK(refusal(std::string(kMostOrderLineBytes + 1, 'a')) ==
        "order file order.txt, line 1: found a line of 16777217 bytes; allowed: up to 16777216");
  for (const char* text : {"", "# nothing\n", "-\n-\n"}) {
    CHECK(refusal(text).starts_with("order file order.txt: found no row with a sequence"));
  }
}

TEST_CASE("planning: keys are refused where sequences have none, and a failed look-up is told") {
  const auto without = parse_order("u1\n", "o", {2, nullptr});
  REQUIRE_FALSE(without);
  CHECK(without.error().message ==
        "order file o, line 1: row 1: found key \"u1\" for sequences without keys; allowed: "
        "ordinals, #0 to #1");
  const auto failed =
      parse_order("u1\n", "o", {2, [](std::string_view) {
                                  return Error{ErrorCode::store_unavailable, "gone"};
                                }});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::store_unavailable);
}

TEST_CASE("planning: a line of an order file is a batch, and a row has the flags of its part") {
  const auto plan =
      planned(with_order({"cut=file", "world=2"}, "a\tb 5 15\nc 0 10\td 3 4\tc\na\n-\t-\t#0\n"));
  REQUIRE(plan.batches() == 4);
  CHECK(plan.steps() == 2);
  const auto first = batch_of(plan, 0);
  CHECK(first[0].flags == (kRowReset | kRowLast));
  CHECK(first[1].flags == kRowLast);
  const auto second = batch_of(plan, 1);
  CHECK(second[0].flags == kRowReset);
  CHECK(second[1].flags == 0);
  CHECK(second[2].use == 1);  // from frame 0 on, as the first row of the batch
  CHECK(batch_of(plan, 2)[0].use == 1);
  const auto last = batch_of(plan, 3);
  CHECK(last[1].length == 0);
  CHECK(last[1].flags == 0);
  CHECK(last[1].use == 0);
  CHECK(last[2].use == 2);
  CHECK(plan.figures(BatchIndex{1}).batch_length == 30);
  CHECK(plan.counts().kept == 4);
  CHECK(plan.counts().selected == 4);
  const auto bound =
      plan_bound(kLengths, with_order({"cut=file"}, "a\tb 5 15\nc 0 10\td 3 4\tc\n"));
  REQUIRE(bound);
  CHECK(bound->rows == 3);
  CHECK(bound->padded_frames == 90);
}

TEST_CASE("planning: an order file before another cut gives the order of rows alone") {
  for (const char* text : {"e\na\nc\nb\nd\n", "e\ta\tc\nb\td\n"}) {
    const auto plan = planned(with_order({"size=2"}, text));
    CHECK(testing::batches_of(plan) ==
          std::vector<std::vector<std::uint64_t>>{{4, 0}, {2, 1}, {3}});
  }
  const auto plan = planned(with_order({"cut=frames", "max_frames=60"}, "e\na\nc\nb\nd\n"));
  CHECK(testing::batches_of(plan) ==
        std::vector<std::vector<std::uint64_t>>{{4}, {0, 2}, {1}, {3}});
}

TEST_CASE("planning: every epoch has the same order, with any seed") {
  const auto settings = with_order({"size=2", "seed=5"}, "e\na\nc\nb\nd\n");
  const auto plan = plan_epoch(kLengths, settings, Epoch{7});
  REQUIRE(plan);
  check_same(*plan, planned(with_order({"size=2"}, "e\na\nc\nb\nd\n")));
}

TEST_CASE("planning: rows of weight 0 count in no total") {
  const auto plan = planned(with_order({"cut=file"}, "a\tb *0\tc *0.5\nd *0\n"));
  const auto rows = batch_of(plan, 0);
  CHECK(rows[0].weight == 1.0F);
  CHECK(rows[1].weight == 0.0F);
  CHECK(rows[2].weight == 0.5F);
  const BatchFigures figures = plan.figures(BatchIndex{0});
  CHECK(figures.rows == 3);
  CHECK(figures.frames == 60);
  CHECK(figures.counted_rows() == 2);
  CHECK(figures.counted_frames() == 40);
  CHECK(plan.figures(BatchIndex{1}).counted_rows() == 0);
}

TEST_CASE("planning: the plan of an order file is that of the plan it was written from") {
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 0; i < 400; ++i) lengths.push_back(20 + i * 37 % 300);
  const OrderNames numbers{lengths.size(), nullptr};
  const std::vector<PlanSettings> cases = {
      testing::settings({"order=sorted", "cut=dynamic", "size=8", "world=4", "chunk=70", "hop=50"}),
      testing::settings({"order=random", "cut=frames", "max_frames=2000", "shuffle=groups",
                         "world=3", "remainder=wrap", "seed=9"}),
      testing::settings({"order=semi-sorted", "size=7", "world=2", "remainder=spread"}),
      testing::settings({"lanes=5", "unroll=30", "world=2"}),
      testing::settings({"order=bucket-span", "bucket_span=40", "cut=dynamic", "size=4"})};
  for (const PlanSettings& settings : cases) {
    const auto plan = planned(settings, lengths);
    PlanSettings listed;
    listed.cut = Cut::file;
    listed.world = settings.world;
    listed = with_order(listed, file_of(plan), numbers);
    check_same(plan, planned(listed, lengths));
    const auto bound = plan_bound(lengths, listed);
    REQUIRE(bound);
    std::uint64_t rows = 0, padded = 0;
    for (std::uint64_t index = 0; index < plan.batches(); ++index) {
      const BatchFigures batch = plan.figures(BatchIndex{index});
      rows = std::max<std::uint64_t>(rows, batch.rows);
      padded = std::max(padded, std::uint64_t{batch.rows} * batch.batch_length);
    }
    CHECK(bound->rows == rows);
    CHECK(bound->padded_frames == padded);
  }
}

TEST_CASE("planning: an order file with the rows of an order is cut as that order is") {
  const auto sorted = testing::settings({"order=sorted", "cut=dynamic", "size=2", "world=2"});
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 0; i < 100; ++i) lengths.push_back(10 + i * 17 % 90);
  const auto plan = planned(sorted, lengths);
  PlanSettings listed = sorted;
  listed = with_order(listed, file_of(plan), {lengths.size(), nullptr});
  check_same(plan, planned(listed, lengths));
  listed.rule = CutRule::overrun;
  const auto overrun = planned(listed, lengths);
  const auto bound = plan_bound(lengths, listed);
  REQUIRE(bound);
  for (std::uint64_t index = 0; index < overrun.batches(); ++index) {
    CHECK(overrun.figures(BatchIndex{index}).rows <= bound->rows);
  }
}

TEST_CASE("planning: lanes take the whole sequences of an order file, as often as it names them") {
  const auto plan = planned(with_order({"lanes=1", "unroll=20"}, "a\nb\na\n"));
  REQUIRE(plan.batches() == 3);
  CHECK(batch_of(plan, 2)[0].ordinal == 0);
  CHECK(batch_of(plan, 2)[0].use == 1);
  CHECK(
      plan_refusal(with_order({"lanes=1", "unroll=20"}, "a\nb 1 5\n"))
          .find("order file order.txt, line 2, row 1: found a part of a sequence; lanes cut whole "
                "ones") != std::string::npos);
}

TEST_CASE("planning: what the rows of an order file say has to fit the lengths and the world") {
  CHECK(plan_refusal(with_order({}, "a\nb 15 6\n")) ==
        "order file order.txt, line 2, row 1: found a part that passes the end of its sequence: "
        "sequence 1 with 20 frames, start 15, count 6");
  CHECK(plan_refusal(with_order({}, "a\nb 20 1\n")).find("line 2, row 1") != std::string::npos);
  CHECK(plan_refusal(with_order({}, "a\t-\n"))
            .find("line 1, row 2: found no sequence (-), which needs cut = file") !=
        std::string::npos);
  CHECK(plan_refusal(with_order({"cut=file", "world=2"}, "a\nb\nc\n")) ==
        "order file order.txt: found 3 lines with a batch each; allowed: a multiple of world = 2");
  CHECK(plan_refusal(with_order({"cut=frames", "max_frames=45"}, "a\ne\te\n")) ==
        "2 of 3 rows of order file order.txt exceed max_frames = 45, the longest with 50 frames");
  CHECK(plan_refusal(with_order({"size=4", "world=3"}, "a\nb\n")).find("fewer than world = 3") !=
        std::string::npos);
  PlanSettings unread = testing::settings({"order=file", "order_file=x"});
  CHECK(plan_refusal(unread) == "order_file = x has not been read");
  const std::vector<std::uint32_t> fewer = {10};
  const auto plan = plan_epoch(fewer, with_order({}, "a\nb\n"), Epoch{0});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message == "order file order.txt, line 2, row 1: sequence 1 of 1");
}

TEST_CASE("planning: the hash of settings has the rows of an order file, and not its name") {
  const auto hash = [](std::initializer_list<std::string_view> texts, const std::string& text,
                       const std::string& name = "order.txt") {
    PlanSettings settings = with_order(texts, text);
    settings.order_file = name;
    return settings_hash(settings);
  };
  const auto plain = hash({}, "a\nb 1 2\n");
  CHECK(hash({}, "a\nb 1 2\n", "elsewhere") == plain);
  CHECK(hash({}, "# another text\n#0\n#1 1 2 *1\n") == plain);
  CHECK(hash({}, "a\tb 1 2\n") == plain);  // lines say nothing for this cut
  CHECK(hash({}, "a *-0\nb 1 2\n") == hash({}, "a *0\nb 1 2\n"));
  for (const char* other :
       {"b 1 2\na\n", "a\nb 1 3\n", "a\nb 2 2\n", "a\nb\n", "a\nb 1 2 *0\n", "a\n"}) {
    CAPTURE(other);
    CHECK(hash({}, other) != plain);
  }
  CHECK(hash({"cut=file"}, "a\nb 1 2\n") != hash({"cut=file"}, "a\tb 1 2\n"));
  CHECK(rows_of("a\nb 1 2 *0.5\n").line_hash == 0x18A461C5902DB7E0u);
}
