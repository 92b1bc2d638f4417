// Writes inputs to begin with into FOLDER/TARGET/: sound messages, batches, records, replies, files
// of sound and settings, so that they follow the formats as these change.

#include "tests/fuzz/seeds/seeds.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/schemas.h"
#include "tests/fuzz/seeds/messages.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// A sound message of this kind, for a first subscription.
std::string message(wire::Body kind) {
  const std::vector<std::byte> ones(64, std::byte{1});
  Choices figures{std::span(ones)};
  const auto bytes = encode(make_message(kind, figures));
  return as_text(bytes.data(), bytes.size());
}

/// What a daemon says, in the order of the kinds' numbers; a refusal ends it, or there is none.
std::string words_of_daemon(bool refused) {
  std::string conversation(3, '\0');
  for (const MessageKind& kind : message_kinds()) {
    if (!sends(Sender::daemon, kind) || (kind.body == wire::Body::Refused && !refused)) continue;
    const std::string each = message(kind.body);
    conversation += number_bytes(static_cast<std::uint16_t>(each.size())) + each;
  }
  return conversation;
}

void write_messages(const std::filesystem::path& folder) {
  Seeds single(folder, "client_messages");
  for (const MessageKind& kind : message_kinds()) single.add(message(kind.body));
  Seeds conversations(folder, "daemon_messages");
  for (const bool refused : {false, true}) conversations.add(words_of_daemon(refused));
}

/// A batch with a tensor of each kind, its payload zeros.
std::string batch(Layout layout) {
  const std::array<FieldSpec, 4> fields = {
      FieldSpec{"x", FieldKind::primary, DType::float32, {2}, {}},
      FieldSpec{"y", FieldKind::aligned, DType::uint8, {}, {}},
      FieldSpec{"z", FieldKind::independent, DType::int16, {}, {}},
      FieldSpec{"s", FieldKind::scalar, DType::int32, {}, {}}};
  const std::vector<std::uint64_t> ordinals = {7, 9};
  const std::vector<std::string_view> keys = {"a", "bc"};
  const std::vector<std::uint32_t> lengths = {3, 2};
  const std::vector<std::uint32_t> u = {1, 2};
  const std::vector<std::uint32_t> starts = {0, 5};
  const std::vector<std::uint8_t> flags = {kRowReset, kRowLast};
  BatchSpec spec;
  spec.feed = "train";
  spec.epoch = Epoch{1};
  spec.step = Step{2};
  spec.index = BatchIndex{2};
  spec.layout = layout;
  spec.batch_length = 3;
  spec.ordinals = ordinals;
  spec.keys = keys;
  spec.lengths = lengths;
  if (layout == Layout::time_major) spec.starts = starts;
  if (layout == Layout::time_major) spec.flags = flags;
  spec.batch_frames = spec.step_frames = 5;
  spec.step_sequences = 2;
  spec.tensors = {{&fields[0], {2, 3, 2}, {}},
                  {&fields[1], {2, 3}, {}},
                  {&fields[2], {2, 2}, u},
                  {&fields[3], {2}, {}}};
  const std::vector<std::byte> zeros(batch_bytes_bound(spec));
  const AlignedInput slot(zeros);
  const auto room = slot.bytes();
  const auto laid_out = lay_out_batch(spec, {const_cast<std::byte*>(room.data()), room.size()});
  require(laid_out.has_value(), "a batch can be laid out");
  return as_text(room.data() + laid_out->offset, laid_out->size);
}

/// A record of two frames under the n-th schema.
std::string record(std::size_t n) {
  const Schema schema = record_schemas()[n];
  const std::vector<std::byte> zeros(4096);
  std::vector<FieldValue> values;
  for (const FieldSpec& field : schema.fields) {
    const std::uint32_t length = field.kind == FieldKind::scalar ? 1 : 2;
    values.push_back({std::span(zeros).first(length * frame_bytes(field)), length});
  }
  const Sequence sequence{"key", values};
  std::vector<std::byte> bytes(record_bytes(sequence));
  write_record(sequence, Ordinal{3}, 2, bytes);
  return std::string(1, static_cast<char>(n)) + as_text(bytes.data(), bytes.size());
}

std::string npy(const std::string& description) {
  std::string header = description;
  header.resize(118, ' ');
  const auto bytes = static_cast<std::uint16_t>(header.size());
  return std::string("\x93NUMPY\x01\x00", 8) + as_text(&bytes, sizeof bytes) + header;
}

std::string arena_reply(char descriptors, std::uint64_t bytes) {
  ArenaReply reply;
  reply.arena = 1;
  reply.bytes = bytes;
  return std::string(1, descriptors) + as_text(&reply, sizeof reply);
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "called as: fuzz_seeds FOLDER");
  const std::filesystem::path folder = argv[1];
  write_messages(folder);
  Seeds batches(folder, "batches");
  batches.add(batch(Layout::batch_major));
  batches.add(batch(Layout::time_major));
  Seeds records(folder, "records");
  for (std::size_t n = 0; n < record_schemas().size(); ++n) records.add(record(n));
  Seeds headers(folder, "npy");
  headers.add(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 80), }"));
  headers.add(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (7,), }"));
  Seeds replies(folder, "arena_replies");
  replies.add(arena_reply(1, 8192));
  replies.add(arena_reply(2, 100));
  replies.add(arena_reply(0, 0));
  // A subscription, then releases; a damaged message; requests on the arena socket.
  Seeds conversations(folder, "conversation");
  conversations.add(std::string("\1\1\1\0\1\0\4\0\0\1\0\0\2\1\3\1\2\3\1\3\1\5\1\1\0", 23));
  conversations.add(std::string("\16\1\1\1\1\0\4\0\0\1\0\0\1\20\0\377\40\0\1\0\1", 21));
  conversations.add(std::string("\17\1\0\1\0\17\0\1\5\5\5\5\5\5\5\5\1\17\4", 19));
  write_sound_seeds(folder);
  write_setting_seeds(folder);
  return 0;
}
