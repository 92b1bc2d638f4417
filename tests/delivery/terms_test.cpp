#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Another value for each setting of the plan than the one that sorted_feed(4) has.
const std::map<std::string, std::string, std::less<>> kOthers = {{"select", "linear"},
                                                                 {"usage", "0.5"},
                                                                 {"alpha", "0.25"},
                                                                 {"beta", "0.125"},
                                                                 {"lambda", "1.5"},
                                                                 {"flat_after", "7"},
                                                                 {"floor", "0.75"},
                                                                 {"epochs", "9"},
                                                                 {"chunk", "40"},
                                                                 {"hop", "20"},
                                                                 {"lanes", "8"},
                                                                 {"unroll", "30"},
                                                                 {"mix_weights", "1,2.5"},
                                                                 {"mix_exhausted", "end"},
                                                                 {"min_length", "2"},
                                                                 {"max_length", "1000"},
                                                                 {"order", "random"},
                                                                 {"randomization", "0.3"},
                                                                 {"bins", "5"},
                                                                 {"bucket_size", "64"},
                                                                 {"bucket_span", "10"},
                                                                 {"bucket_count", "6"},
                                                                 {"bucket_boundaries", "10,20"},
                                                                 {"cut", "dynamic"},
                                                                 {"size", "24"},
                                                                 {"rule", "overrun"},
                                                                 {"max_frames", "5000"},
                                                                 {"max_padded", "9000"},
                                                                 {"quadratic_scale", "500"},
                                                                 {"length_multiple", "4"},
                                                                 {"size_multiple", "8"},
                                                                 {"max_size", "48"},
                                                                 {"last", "drop"},
                                                                 {"seed", "7"},
                                                                 {"shuffle", "groups"},
                                                                 {"world", "2"},
                                                                 {"remainder", "wrap"},
                                                                 {"min_chunk", "10"}};

/// A server of sorted_feed(4), and a client that asks for what other settings gave.
class Asking {
 public:
  Asking() : client_(server_.endpoint()) { client_.join(server_.arena_socket()); }

  /// The refusal if a client expects what `had` gives. `says`: whether it sends the terms of then.
  std::string refused(const FeedSettings& had, bool says = true) {
    wire::SubscribeT request = subscribe_to_train();
    server_.ask([&](const Server& s) {
      const auto snapshot = s.feeds()[0]->plan_question({}).snapshot;
      const Snapshot& data = *snapshot;
      request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(fingerprint_of(data, had)));
      if (says) request.terms = terms_text(had, data.schema());
      return 0;
    });
    return refused(std::move(request));
  }
  std::string refused(wire::SubscribeT request) {
    request.expects_fingerprint = true;
    client_.send(std::move(request));
    return refusal(client_, ErrorCode::fingerprint_mismatch);
  }
  /// The fingerprint that is granted.
  Fingerprint accepted(wire::SubscribeT request) {
    request.expects_fingerprint = true;
    client_.send(std::move(request));
    const auto granted = read_until<wire::Subscribed>(client_);
    REQUIRE(granted);
    return from_wire(*granted->as<wire::Subscribed>()->fingerprint());
  }
  TestServer& server() { return server_; }

 private:
  TestServer server_{sorted_feed(4)};
  RawClient client_;
};

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "delivery: whichever setting of the plan is another, a refusal names it and both values") {
  Asking asking;
  const PlanSettings plain = sorted_feed(4).plan;
  for (const SettingRow& row : setting_rows()) {
    if (row.name == "order_file" || row.name == "row_weight") continue;  // see below
    const auto other = kOthers.find(row.name);
    REQUIRE_MESSAGE(other != kOthers.end(), row.name);
    FeedSettings had = sorted_feed(4);
    REQUIRE(set_setting(had.plan, row.name, other->second));
    const std::string now = get_setting(plain, row.name);
    const std::string wanted = ": " + other->first + ": " + other->second + " before, " +
                               (now.empty() ? "not set" : now) + " now (expected ";
    const std::string text = asking.refused(had);
    CHECK_MESSAGE(contains(text, wanted), text);
  }
}

TEST_CASE("delivery: another order file is refused by its rows, whatever its path is") {
  Asking asking;
  FeedSettings had = sorted_feed(4);
  had.plan.order = Order::file;
  had.plan.order_file = "/secret/place";
  const OrderNames names{40, nullptr};
  had.plan.order_rows = std::make_shared<const OrderRows>(*parse_order("#3\n", "o", names));
  const std::string text = asking.refused(had);
  CHECK_MESSAGE(contains(text, "order: file before, sorted now"), text);
  const std::string terms = terms_text(had, small_schema());
  CHECK(contains(terms, "order = file\n"));
  CHECK(contains(terms, "\norder_rows = "));
  CHECK_FALSE(contains(terms, "secret"));
  had.plan.order_file = "/other";
  CHECK(terms_text(had, small_schema()) == terms);
  had.plan.order_rows = std::make_shared<const OrderRows>(*parse_order("#4\n", "o", names));
  CHECK(describe_change({{1, 1, 1}, terms}, {{1, 2, 1}, terms_text(had, small_schema())})
            .starts_with("order_rows: "));
}

TEST_CASE("delivery: another layout and padding are refused, with both values") {
  Asking asking;
  FeedSettings had = sorted_feed(4);
  had.layout = Layout::time_major;
  std::string text = asking.refused(had);
  CHECK_MESSAGE(contains(text, "layout: time-major before, batch-major now"), text);
  CHECK(contains(asking.refused(had, false),
                 "has changed: settings (or planner) changed (expected "));
  had = sorted_feed(4);
  had.padding = {{"features", -100}};
  text = asking.refused(had);
  CHECK_MESSAGE(contains(text, "padding.features: -100 before, 0 now (expected"), text);
}

TEST_CASE("delivery: a checkpoint from before sequences were appended is told of follow") {
  Asking asking;
  auto other = *asking.server().feed().fingerprint;
  other.data += 1;
  wire::SubscribeT request = subscribe_to_train();
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(other));
  const std::string text = asking.refused(std::move(request));
  CHECK_MESSAGE(contains(text,
                         "data changed; after sequences were appended, a feed with follow = "
                         "true goes on with the data of the checkpoint (expected "),
                text);
}

TEST_CASE("delivery: each property of a field belongs to the fingerprint's terms") {
  const Schema now = small_schema();
  const auto differs = [&now](const auto& change) {
    Schema other = small_schema();
    change(other.fields[0]);
    const FeedSettings feed = sorted_feed(4);
    return describe_change({{1, 1, 1}, terms_text(feed, other)},
                           {{1, 2, 1}, terms_text(feed, now)});
  };
  CHECK(differs([](FieldSpec& field) { field.dtype = DType::float16; }) ==
        "dtype.features: float16 before, float32 now");
  CHECK(differs([](FieldSpec& field) {
          field.shape = {4, 2};
        }) == "shape.features: [4,2] before, [4] now");
  CHECK(differs([](FieldSpec& field) { field.kind = FieldKind::aligned; }) ==
        "kind.features: aligned before, primary now");
  CHECK(contains(differs([](FieldSpec& field) { field.name = "sound"; }),
                 "fields: sound,label before, features,label now"));
}

TEST_CASE("delivery: Subscribed tells the terms, and a client that sends them back is let in") {
  Asking asking;
  RawClient client(asking.server().endpoint());
  client.join(asking.server().arena_socket());
  client.send(subscribe_to_train());
  const auto answer = read_until<wire::Subscribed>(client);
  REQUIRE(answer);
  const auto* granted = answer->as<wire::Subscribed>();
  const std::string terms = granted->terms()->str();
  CHECK(contains(terms, "order = sorted\n"));
  CHECK(contains(terms, "layout = batch-major\nfields = features,label\n"));
  auto again = subscribe_to_train();
  again.subscription = 2;
  again.expects_fingerprint = true;
  again.fingerprint = std::make_unique<wire::Fingerprint>(*granted->fingerprint());
  again.terms = terms;
  client.send(std::move(again));
  CHECK(read_until<wire::Subscribed>(client));
}

TEST_CASE(
    "delivery: a fingerprint in its older form, of the plan alone, goes on where it is equal") {
  Asking asking;
  auto had = *asking.server().feed().fingerprint;
  had.settings = settings_hash(sorted_feed(4).plan);
  wire::SubscribeT request = subscribe_to_train();
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(had));
  request.step = 1;
  CHECK(asking.accepted(std::move(request)).settings != had.settings);
  FeedSettings other = sorted_feed(4);
  other.plan.size += 1;
  had.settings = settings_hash(other.plan);
  request = subscribe_to_train();
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(had));
  const std::string text = Asking().refused(std::move(request));
  CHECK_MESSAGE(contains(text, "has changed: settings (or planner) changed"), text);
}

TEST_CASE("delivery: a feed that casts to another dtype is refused, with both dtypes") {
  Asking asking;
  FeedSettings had = sorted_feed(4);
  had.casts.all = DType::float16;
  const std::string text = asking.refused(had);
  CHECK_MESSAGE(contains(text, "dtype.features: float16 before, float32 now (expected"), text);
}

TEST_CASE("delivery: the terms of a feed that casts nothing say of its fields what they are") {
  const std::string look =
      "layout = batch-major\nfields = features,label\n"
      "kind.features = primary\ndtype.features = float32\nshape.features = [4]\n"
      "padding.features = 0\nkind.label = scalar\ndtype.label = int32\nshape.label = []\n";
  CHECK(terms_text(sorted_feed(4), small_schema()).ends_with(look));
}

TEST_CASE("delivery: clients are told the dtype of a cast, and its overflows are logged once") {
  FeedSettings settings = sorted_feed(4);
  settings.casts.fields = {{"features", DType::float16}};
  TestServer server(settings, 80);  // small_value() is above 65,519 from sequence 66 on
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), subscribe_to_train()));
  for (int i = 0; i < 20; ++i) {
    const auto ticket = next_ticket(client);
    REQUIRE(ticket);
    client.send(release_of(*ticket));
  }
  CHECK(server.ask([](const Server& s) { return s.feeds()[0]->info().fields.at(0)->dtype; }) ==
        DType::float16);
  CHECK(server.count(FeedCounter::cast_overflows) > 14);
  CHECK(server.ask([](const Server& s) { return s.log().get(Event::cast_overflow); }) == 1);
  const bool named = server.ask([](const Server& s) {
    const auto& lines = s.log().latest();
    return std::any_of(lines.begin(), lines.end(), [](const LoggedEvent& line) {
      return line.event == Event::cast_overflow &&
             contains(line.text, "feed train: field features of sequence ");
    });
  });
  CHECK(named);
}
