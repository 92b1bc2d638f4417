#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

/// A file that is mapped, and can be cut to nothing.
class MappedFile {
 public:
  explicit MappedFile(std::span<const std::byte> bytes) {
    char name[] = "/tmp/batchwright-fault-XXXXXX";
    file_ = ::mkstemp(name);
    REQUIRE(file_ >= 0);
    ::unlink(name);
    REQUIRE(::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    void* const map = ::mmap(nullptr, bytes.size(), PROT_READ, MAP_SHARED, file_, 0);
    REQUIRE(map != MAP_FAILED);
    map_ = {static_cast<const std::byte*>(map), bytes.size()};
  }
  MappedFile(const MappedFile&) = delete;
  ~MappedFile() {
    ::munmap(const_cast<std::byte*>(map_.data()), map_.size());
    ::close(file_);
  }
  void cut() const { REQUIRE(::ftruncate(file_, 0) == 0); }
  std::span<const std::byte> bytes() const { return map_; }

 private:
  int file_ = -1;
  std::span<const std::byte> map_;
};

/// Two sequences, each record in a mapped file of its own.
class FileSnapshot final : public Snapshot {
 public:
  FileSnapshot() : made_up_(frames_only(DType::float32, {4}), {1999, 2000}) {
    for (const std::uint64_t o : {0U, 1U}) {
      const auto record = made_up_.record(Ordinal{o});
      const FieldValue value = record->field(0);
      const Sequence sequence{record->key(), {&value, 1}};
      std::vector<std::byte> bytes(record_bytes(sequence));
      write_record(sequence, Ordinal{o}, value.length, bytes);
      files_.push_back(std::make_unique<MappedFile>(bytes));
    }
  }

  const Schema& schema() const override { return made_up_.schema(); }
  std::uint64_t sequences() const override { return 2; }
  std::span<const std::uint64_t> shard_sequences() const override {
    return made_up_.shard_sequences();
  }
  std::uint64_t generation() const override { return 1; }
  std::uint64_t content() const override { return 1; }
  std::span<const std::uint32_t> lengths() const override { return made_up_.lengths(); }
  std::span<const std::uint32_t> field_lengths(std::size_t) const override { return {}; }
  std::span<const std::uint16_t> key_bytes() const override { return made_up_.key_bytes(); }
  std::optional<RecordPlace> place(Ordinal) const override { return {}; }
  Result<std::optional<Ordinal>> find(std::string_view) const override {
    return std::optional<Ordinal>();
  }
  void let_go(Ordinal) const override {}
  std::uint64_t file_bytes() const override { return 0; }

  Result<RecordView> record(Ordinal ordinal) const override {
    auto record = RecordView::parse(schema(), files_[ordinal.value]->bytes());
    if (after_record) after_record(ordinal);
    return record;
  }
  Result<RecordView> record(Ordinal ordinal, const RecordPlace&) const override {
    return record(ordinal);
  }
  void cut(Ordinal ordinal) const { files_[ordinal.value]->cut(); }

  std::function<void(Ordinal)> after_record;

 private:
  MadeUpSnapshot made_up_;
  std::vector<std::unique_ptr<MappedFile>> files_;
};

}  // namespace

TEST_CASE("assembly: a map that faults while it is read fails the batch and no more") {
  const auto snapshot = std::make_shared<FileSnapshot>();
  const auto source = plan_of(snapshot, in_order(2));
  const TestSlot slot(std::size_t{1} << 17);
  BatchStyle style{"train", Layout::batch_major, {}, OnCorrupt::skip};
  REQUIRE(assemble_batch(*source, style, BatchIndex{0}, slot.bytes()));
  std::vector<Row> rows;
  source->plan.rows(BatchIndex{0}, rows);
  const Ordinal first{rows[0].ordinal};
  const Ordinal second{rows[1].ordinal};
  SUBCASE("at the fields of a record that was sound a moment ago") {
    snapshot->after_record = [&](Ordinal ordinal) { snapshot->cut(ordinal); };
  }
  // The first row's fields are known by then.
  const auto cut_first = [&](Ordinal ordinal) {
    if (ordinal == second) snapshot->cut(first);
  };
  SUBCASE("at the payload, batch-major") { snapshot->after_record = cut_first; }
  SUBCASE("at the payload, time-major") {
    style.layout = Layout::time_major;
    snapshot->after_record = cut_first;
  }
  const auto assembled = assemble_batch(*source, style, BatchIndex{0}, slot.bytes());
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::store_unavailable);
  CHECK(assembled.error().message.find("batch 0 of epoch 3: the dataset's map") == 0);
}
