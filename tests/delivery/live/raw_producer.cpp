#include "tests/delivery/live/raw_producer.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/delivery/talk.h"

namespace batchwright::test {
namespace {

constexpr std::size_t kAligned = 64;

template <class Value>
void append(std::vector<std::byte>& bytes, const std::vector<Value>& values) {
  bytes.resize((bytes.size() + kAligned - 1) / kAligned * kAligned);
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  bytes.insert(bytes.end(), first, first + values.size() * sizeof(Value));
}

template <class Table, class TableT = typename Table::NativeTableType>
std::optional<TableT> unpacked_as(const std::optional<ControlMessage>& message) {
  const Table* body = message ? message->as<Table>() : nullptr;
  if (body == nullptr) return {};
  TableT table;
  body->UnPackTo(&table);
  return table;
}

wire::HelloT producing_hello(bool inline_batches) {
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.abilities = kAbilities.bits();
  hello.client = "producer";
  hello.produces = true;
  hello.inline_batches = inline_batches;
  return hello;
}

}  // namespace

FeedSettings live_feed(std::uint32_t step, std::uint32_t world) {
  FeedSettings settings;
  settings.name = "live";
  settings.plan.world = world;
  LiveFeedSettings live;
  live.schema.fields = {{"x", FieldKind::primary, DType::float32, {2}, {}, 0},
                        {"ids", FieldKind::aligned, DType::int32, {}, {}, 0},
                        {"score", FieldKind::scalar, DType::float32, {}, {}, 0}};
  live.pool.step = step;
  live.pool.world = world;
  live.pool.max_length = 100;
  live.pool.pool_bytes = 1 << 20;
  live.pool.frame_bytes = {8, 4, 4};
  auto checked = check_live_settings(live.pool);
  REQUIRE_MESSAGE(checked, (checked ? "" : checked.error().message));
  live.pool = *checked;
  settings.live = live;
  return settings;
}

float x_value(std::uint64_t number, std::size_t i) { return static_cast<float>(number * 1000 + i); }

std::int32_t id_value(std::uint64_t number, std::size_t i) {
  return static_cast<std::int32_t>(number * 100 + i);
}

std::vector<std::byte> bytes_of_sequence(const Offered& sequence) {
  std::vector<float> x;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < 2 * std::size_t{sequence.length}; ++i) {
    x.push_back(x_value(sequence.number, i));
  }
  for (std::size_t i = 0; i < sequence.length; ++i) ids.push_back(id_value(sequence.number, i));
  std::vector<std::byte> bytes;
  append(bytes, x);
  append(bytes, ids);
  append(bytes, std::vector<float>{static_cast<float>(sequence.number)});
  return bytes;
}

LaidOutPush lay_out(const std::vector<Offered>& sequences, std::uint64_t at) {
  LaidOutPush laid;
  wire::PushT& push = laid.push;
  push.producer = 1;
  push.first = sequences.front().number;
  for (const Offered& each : sequences) {
    laid.bytes.resize((laid.bytes.size() + kAligned - 1) / kAligned * kAligned);
    const std::string key = "k" + std::to_string(each.number);
    push.sequences.emplace_back(at + laid.bytes.size(), each.version, each.version, each.group,
                                each.group_size, static_cast<std::uint32_t>(key.size()),
                                each.weight);
    const auto bytes = bytes_of_sequence(each);
    laid.bytes.insert(laid.bytes.end(), bytes.begin(), bytes.end());
    push.keys.insert(push.keys.end(), key.begin(), key.end());
    if (each.epoch != 0 || !push.epochs.empty()) {
      push.epochs.resize(push.sequences.size());
      push.epochs.back() = each.epoch;
    }
    for (const std::uint32_t length : {each.length, each.length, 1U}) {
      push.lengths.push_back(length);
    }
  }
  return laid;
}

RawProducer::RawProducer(const TestServer& server, const std::string& name,
                         std::uint64_t area_bytes)
    : client_(server.endpoint()) {
  if (area_bytes != 0) {
    client_.join(server.arena_socket(), producing_hello(false));
  } else {
    REQUIRE(client_.hello(producing_hello(true)) != 0);
  }
  wire::ProduceT request;
  request.producer = 1;
  request.feed = "live";
  request.name = name;
  request.area_bytes = area_bytes;
  client_.send(std::move(request));
  auto answer = unpacked_as<wire::Produced>(client_.receive_news());
  REQUIRE(answer);
  produced_ = std::move(*answer);
  if (produced_.area == 0) return;
  std::uint64_t bytes = 0;
  const int descriptor = client_.arena(produced_.area, client_.session(), bytes);
  REQUIRE(descriptor >= 0);
  CHECK(bytes == produced_.area_bytes);
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  REQUIRE(start != MAP_FAILED);
  area_ = static_cast<std::byte*>(start);
}

RawProducer::~RawProducer() {
  if (area_ != nullptr) ::munmap(area_, produced_.area_bytes);
}

void RawProducer::offer(const std::vector<Offered>& sequences, std::int64_t timeout_ms,
                        std::uint64_t at) {
  LaidOutPush laid = lay_out(sequences, area_ == nullptr ? 0 : at);
  laid.push.question = ++question_;
  laid.push.framed = area_ == nullptr;
  laid.push.timeout_ms = timeout_ms;
  if (area_ == nullptr) return client_.send_framed(std::move(laid.push), laid.bytes);
  std::copy(laid.bytes.begin(), laid.bytes.end(), area_ + at);
  client_.send(std::move(laid.push));
}

std::optional<wire::AcceptedT> RawProducer::push_in_parts(const std::vector<Offered>& sequences,
                                                          std::size_t part_bytes) {
  auto [push, frame] = lay_out(sequences);
  push.question = ++question_;
  push.framed = true;
  push.total_bytes = frame.size();
  std::optional<wire::AcceptedT> answer;
  for (std::size_t at = 0; at < frame.size(); at += part_bytes) {
    push.part_at = at;
    const auto part = std::span(frame).subspan(at, std::min(part_bytes, frame.size() - at));
    client_.send_framed(wire::PushT(push), part);
    answer = accepted();
    if (!answer || answer->code != 0) break;
    CHECK(answer->taken == (at + part.size() < frame.size() ? at + part.size() : 0));
  }
  return answer;
}

std::optional<wire::AcceptedT> RawProducer::push_part(std::uint64_t total, std::uint64_t at,
                                                      std::span<const std::byte> part) {
  wire::PushT push = lay_out({{0, 1}}).push;
  push.framed = true;
  push.question = 77;  // the same for all
  push.total_bytes = total;
  push.part_at = at;
  client_.send_framed(std::move(push), part);
  return accepted();
}

std::optional<wire::AcceptedT> RawProducer::accepted() {
  while (true) {
    const auto message = client_.receive_news();
    if (message && message->as<wire::Freed>() != nullptr) continue;
    return unpacked_as<wire::Accepted>(message);
  }
}

std::uint64_t RawProducer::push(const std::vector<Offered>& sequences) {
  offer(sequences);
  const auto answer = accepted();
  REQUIRE(answer);
  CHECK_MESSAGE(answer->code == 0, answer->text);
  return answer->next;
}

std::optional<wire::ClaimedT> RawProducer::claim(std::uint32_t count, std::int64_t timeout_ms) {
  wire::ClaimT request;
  request.producer = 1;
  request.question = ++question_;
  request.count = count;
  request.timeout_ms = timeout_ms;
  client_.send(std::move(request));
  return unpacked_as<wire::Claimed>(client_.receive_news());
}

std::optional<wire::OutcomesT> RawProducer::outcomes(std::uint64_t first) {
  wire::ListOutcomesT request;
  request.producer = 1;
  request.question = ++question_;
  request.first = first;
  request.count = 1000;
  client_.send(std::move(request));
  return unpacked_as<wire::Outcomes>(client_.receive_news());
}

RawTrainer::RawTrainer(const TestServer& server, wire::SubscribeT request)
    : client_(server.endpoint()) {
  REQUIRE(client_.hello(true) != 0);
  request.subscription = 1;
  if (request.feed.empty()) request.feed = "live";
  client_.send(std::move(request));
  const auto answer = client_.receive_news();
  subscribed_ = unpacked_as<wire::Subscribed>(answer);
  refused_ = unpacked_as<wire::Refused>(answer);
}

std::optional<SeenBatch> RawTrainer::next() {
  const auto message = client_.receive_news();
  auto delivery = unpacked_as<wire::Delivery>(message);
  refused_ = unpacked_as<wire::Refused>(message);
  if (!delivery) return {};
  SeenBatch seen;
  seen.ticket = std::move(*delivery);
  const std::vector<std::byte>& bytes = client_.batch();
  std::vector<std::uint64_t> aligned((bytes.size() + 7) / 8);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto batch = verify_batch(std::as_bytes(std::span(aligned)).first(bytes.size()));
  REQUIRE_MESSAGE(batch, (batch ? "" : batch.error().message));
  const wire::Batch& body = **batch;
  const wire::LiveRows* live = body.live();
  for (std::uint32_t r = 0; r < body.lengths()->size(); ++r) {
    seen.keys.push_back(body.keys()->Get(r)->str());
    seen.lengths.push_back(body.lengths()->Get(r));
    seen.starts.push_back(body.starts() != nullptr ? body.starts()->Get(r) : 0);
    seen.flags.push_back(body.flags() != nullptr ? body.flags()->Get(r) : kRowReset | kRowLast);
    seen.weights.push_back(body.weights() != nullptr ? body.weights()->Get(r) : 1.0F);
    if (live == nullptr) continue;
    seen.numbers.push_back(live->numbers()->Get(r));
    seen.versions.push_back(live->versions()->Get(r));
    seen.producers.push_back(live->producer_names()->Get(live->producers()->Get(r))->str());
    if (live->epochs() != nullptr) seen.epochs.push_back(live->epochs()->Get(r));
  }
  if (live != nullptr) {
    seen.version = live->version();
    seen.zeroed = live->zeroed();
  }
  seen.batch_frames = body.batch_frames();
  seen.step_frames = body.step_frames();
  seen.step_sequences = body.step_sequences();
  seen.loss_weight = body.loss_weight();
  for (const auto* tensor : *body.tensors()) {
    const auto* first = reinterpret_cast<const std::byte*>(tensor->data()->data());
    seen.tensors.emplace_back(first, first + tensor->data()->size());
  }
  seen.x = seen.tensors.front();
  return seen;
}

void RawTrainer::release(const SeenBatch& batch) { client_.send(release_of(batch.ticket)); }

std::uint64_t RawTrainer::advance(std::uint64_t version, bool restored) {
  wire::AdvanceT advance;
  advance.feed = "live";
  advance.question = 7;
  advance.version = version;
  advance.restored = restored;
  client_.send(std::move(advance));
  const auto answer = unpacked_as<wire::Version>(client_.receive_news());
  REQUIRE(answer);
  CHECK(answer->question == 7);
  return answer->version;
}

}  // namespace batchwright::test
