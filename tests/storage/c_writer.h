#pragma once

#include <batchwright/writer.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"

// The library is the shared one; what it wrote is read by the room itself once the writer is
// closed, since a process must have an LMDB environment open once.

namespace batchwright::test::c_abi {

inline const bw_field kFeatures = {"features", BW_PRIMARY, BW_FLOAT32, 1, 0, {3}, nullptr};
inline const bw_field kTargets = {"targets", BW_ALIGNED, BW_INT16, 0, 0, {}, nullptr};
inline const bw_field kTokens = {"tokens", BW_INDEPENDENT, BW_INT32, 0, 0, {}, nullptr};
inline const char* const kSpeakers[] = {"ann", "bob"};
inline const bw_field kSpeaker = {"speaker", BW_SCALAR, BW_UINT8, 0, 2, {}, kSpeakers};
inline const bw_field* const kMixed[] = {&kFeatures, &kTargets, &kTokens, &kSpeaker};

/// As mixed_schema().
inline bw_writer_options mixed_options() {
  bw_writer_options options = BW_WRITER_OPTIONS_INIT;
  options.fields = kMixed;
  options.field_count = 4;
  return options;
}

inline bw_writer* open_writer(const std::filesystem::path& path,
                              const bw_writer_options& options = mixed_options()) {
  bw_writer* writer = nullptr;
  REQUIRE_MESSAGE(bw_writer_open(path.c_str(), &options, &writer) == BW_OK,
                  bw_writer_error_message());
  return writer;
}

/// The status of an open that is to fail.
inline bw_status refusal(const std::filesystem::path& path, const bw_writer_options& options) {
  bw_writer* writer = nullptr;
  const bw_status status = bw_writer_open(path.c_str(), &options, &writer);
  CHECK(writer == nullptr);
  return status;
}

inline bw_status add(bw_writer* writer, const Sample& sample, std::uint64_t* ordinal = nullptr) {
  std::vector<bw_value> values;
  for (const FieldValue& field : sample.sequence().fields) {
    values.push_back({field.bytes.data(), field.bytes.size(), field.length});
  }
  const bw_sequence sequence = {sample.key().data(), sample.key().size(), values.data(),
                                values.size()};
  return bw_writer_add(writer, &sequence, ordinal);
}

inline bool says(const std::string& words) {
  return std::string(bw_writer_error_message()).find(words) != std::string::npos;
}

inline std::uint64_t sequences_of(const std::filesystem::path& path) {
  const auto snapshot = snapshot_of({path});
  return snapshot && holds_samples(**snapshot, 0) ? (*snapshot)->sequences() : 0;
}

template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace batchwright::test::c_abi
