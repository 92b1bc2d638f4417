#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "storage/ingest/ingest.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::test {

using Keys = std::vector<std::string>;

/// How an ingest differs from the plain one.
struct How {
  OnError on_error = OnError::stop;
  bool resume = false;
  unsigned threads = 2;
  AnnotationOptions annotations = {};
  AudioSourceOptions audio = {};
  ArrayOptions arrays = {};
  WriterLimits limits = {};
  IngestWatch watch = [](const IngestFigures&) { return true; };
};

/// The folder "in" of audio or of arrays, and the dataset "out" that it goes into.
struct Place {
  TemporaryFolder folder;

  std::filesystem::path in(const std::string& name) const { return folder / "in" / name; }
  std::filesystem::path out() const { return folder / "out"; }

  /// `count` files of growing length in three folders.
  void write_tones(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = std::to_string(1000 + i).substr(1) + ".wav";
      write_file(in(std::string(1, static_cast<char>('a' + i % 3)) + "/" + name),
                 wav(tone(200 + 80 * (i % 40), i)));
    }
  }

  Result<IngestReport> take(const How& how, bool audio) const {
    const auto extensions = audio ? audio_extensions() : npy_extensions();
    const auto list = find_files(folder / "in", extensions);
    if (!list) return list.error();
    const auto source =
        audio ? audio_source(how.audio, list->files) : npy_source(how.arrays, list->files);
    if (!source) return source.error();
    return take(how, **source, list->files);
  }
  /// The files of any source.
  Result<IngestReport> take(const How& how, const IngestSource& source,
                            std::span<const SourceFile> files) const {
    AnnotationOptions wanted = how.annotations;
    if (const auto schema = present_schema(out())) wanted.present = schema->fields;
    const auto annotations = Annotations::create(wanted, files);
    if (!annotations) return annotations.error();
    return ingest({&source,
                   &*annotations,
                   files,
                   out(),
                   {{"source", "test"}},
                   how.on_error,
                   how.resume,
                   how.threads,
                   how.limits},
                  how.watch);
  }
  IngestReport audio(const How& how = {}) const {
    auto report = take(how, true);
    REQUIRE_MESSAGE(report, report.error().message);
    return *report;
  }

  std::shared_ptr<const Snapshot> snapshot() const {
    Catalog catalog;
    const auto dataset = catalog.open({out()});
    REQUIRE(dataset);
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE(snapshot);
    return *snapshot;
  }

  std::vector<std::string> keys() const {
    const auto all = snapshot();
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < all->sequences(); ++i) {
      keys.emplace_back(all->record(Ordinal{i})->key());
    }
    return keys;
  }
};

}  // namespace batchwright::test
