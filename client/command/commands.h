#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/library/batchwright/client.h"
#include "storage/features/recipe/recipe.h"
#include "storage/ingest/ingest.h"

// One struct of options and one function a command. command_line.cpp fills the struct and calls
// the function, which lives in the file named after the command and returns the exit code.

namespace batchwright {

/// What all kinds of ingest take; data/ingest/ has the kinds.
struct IngestOptions {
  std::filesystem::path into;      ///< The dataset; or, with `part`, a folder of parts.
  std::optional<IngestPart> part;  ///< Of the files; empty: all.
  AnnotationOptions annotations;
  std::vector<std::string> labels;  ///< Files of label sets, or NAME=FILE.
  std::filesystem::path labels_like;
  std::vector<std::string> excluded;
  OnError on_error = OnError::stop;
  bool resume = false;
  unsigned threads = 0;  ///< 0: one a core.
  bool json = false;

  std::filesystem::path dataset() const { return part ? part_path(into, *part) : into; }
  unsigned read_threads() const {
    return threads > 0 ? threads : std::thread::hardware_concurrency();
  }
};

struct GatherOptions {
  std::filesystem::path folder;  ///< Of parts.
  std::filesystem::path into;    ///< One dataset of all; empty: they stay shards.
  bool resume = false;
  bool json = false;
};
int run_gather(const GatherOptions& options);

struct InspectOptions {
  std::filesystem::path dataset;
  bool json = false;
};
int run_inspect(const InspectOptions& options);

struct VerifyOptions {
  std::filesystem::path dataset;
  bool json = false;
};
int run_verify(const VerifyOptions& options);

struct CmvnCommandOptions {
  std::filesystem::path config;  ///< A daemon's configuration; empty: the two below.
  std::string feed;              ///< Empty: the only one.
  std::filesystem::path dataset;
  RecipeSettings front_end;  ///< Nothing but what makes features of sound.
  std::filesystem::path into;
  std::string by;        ///< The field that tells speakers apart; empty: none does.
  unsigned threads = 0;  ///< 0: one a core.
  bool json = false;
};
int run_cmvn(const CmvnCommandOptions& options);

struct ShowOptions {
  std::filesystem::path config;  ///< A daemon's configuration.
  std::string feed;              ///< Empty: the only one.
  std::vector<std::string> keys;
  std::uint64_t random = 8;  ///< So many sequences where no key is named.
  std::uint64_t epoch = 0;
  std::filesystem::path html;  ///< Empty: no page.
  bool json = false;
};
int run_show(const ShowOptions& options);

struct PlanOptions {
  std::vector<std::string> lengths;             ///< Files of lengths; `-` is standard input.
  std::vector<std::filesystem::path> datasets;  ///< Either these or lists of lengths.
  std::filesystem::path config;                 ///< Or a feed of a daemon's configuration,
  std::string feed;                             ///< by name; empty: the only one.
  /// Name and text of each planning setting that was given.
  std::vector<std::pair<std::string, std::string>> settings;
  std::uint64_t epoch = 0;
  bool json = false;
  bool batches = false;
  bool compare = false;
  std::uint64_t step_cost = 1000;  ///< Frames that a step costs beside its batches, for compare.
  std::filesystem::path html;      ///< Empty: no page.
};
int run_plan(const PlanOptions& options);

/// The keys for a daemon that is reached over tcp://.
struct KeyOptions {
  std::string server_key;          ///< Z85 text; empty: no encryption.
  std::filesystem::path key_file;  ///< This client's secret key; empty: a fresh pair.
};

/// The environment's BATCHWRIGHT_ENDPOINT; empty: it names none.
std::string endpoint_of_environment();
/// That, or BW_DEFAULT_ENDPOINT.
std::string default_endpoint();

struct TailOptions {
  std::string feed;
  std::string endpoint = default_endpoint();
  KeyOptions keys;
  std::optional<std::int32_t> rank;  ///< Together with `ranks`: a share of every step.
  std::optional<std::int32_t> ranks;
  std::uint64_t epochs = 0;  ///< 0: no end.
  std::uint64_t epoch = 0;   ///< The first epoch.
  std::uint64_t step = 0;
  std::uint32_t window = 4;
  bool json = false;
};
int run_tail(const TailOptions& options);

/// The part of a batch that each client of the benchmark reads.
enum class BenchTouch : std::uint8_t {
  header,  ///< Tickets and headers.
  page,    ///< One byte of every 4 KiB of payload too.
  all,     ///< Every real byte: a checksum.
};

struct BenchOptions {
  std::string feed;
  std::string endpoint = default_endpoint();
  KeyOptions keys;
  std::string stats;                 ///< Address of the pages; empty: the daemon is asked for it.
  std::vector<std::string> dataset;  ///< Empty: as the daemon's stats say.
  std::uint32_t clients = 1;
  std::uint32_t producers = 0;  ///< That push into a live feed; 0: the feed has a dataset.
  std::uint32_t length = 0;     ///< Frames of what they push; 0: 100, or as many as the feed takes.
  std::uint32_t window = 4;
  double seconds = 5.0;
  BenchTouch touch = BenchTouch::header;
  std::uint32_t memcpy_threads = 1;
  bool json = false;
};
int run_bench(const BenchOptions& options);

struct JournalOptions {
  std::filesystem::path journal;
  std::filesystem::path salvage;  ///< Where all that is sound is written; empty: nowhere.
  bool json = false;
};
int run_journal(const JournalOptions& options);

struct LiveReplayOptions {
  std::filesystem::path file;  ///< Settings and logs of live feeds: one case, or a list.
  bool json = false;
};
int run_live_replay(const LiveReplayOptions& options);

struct PushOptions {
  std::string feed;             ///< A live one.
  std::filesystem::path input;  ///< A dataset, or JSON lines ("-": standard input); empty: nothing.
  std::string endpoint = default_endpoint();
  KeyOptions keys;
  std::string name;  ///< Of the producer; empty: drawn at random.
  bool end = false;  ///< Ends the feed behind it.
  bool json = false;
};
int run_push(const PushOptions& options);

struct ForwardOptions {
  std::string from;  ///< The endpoint of the daemon that has the sequences.
  std::string feed;
  std::string to;                             ///< The live feed,
  std::string endpoint = default_endpoint();  ///< of this daemon.
  std::string from_key;                       ///< The daemons' public keys; empty: no encryption.
  std::string to_key;
  std::filesystem::path key_file;  ///< The own secret key for both; empty: a fresh pair.
  std::string name;                ///< Of the producer; empty: FEED@HOST.
  std::uint64_t epochs = 0;        ///< 0: as many as the feed has.
  std::uint64_t epoch = 0;         ///< Number 0 is its first sequence.
  std::uint32_t window = 4;
  bool json = false;
};
int run_forward(const ForwardOptions& options);

struct KeygenOptions {
  std::filesystem::path into;  ///< Path to which .secret and .public are appended.
  bool json = false;
};
int run_keygen(const KeygenOptions& options);

struct EventsOptions {
  /// The daemon's endpoint; the daemon names that of its events.
  std::string endpoint = default_endpoint();
  std::string events;  ///< The endpoint of events; empty: the daemon is asked for it.
  std::string feed;    ///< Empty: of all feeds, and of clients.
  KeyOptions keys;
  std::uint64_t count = 0;  ///< So many, then it ends; 0: no end.
  bool json = false;
};
int run_events(const EventsOptions& options);

struct RunOptions {
  std::filesystem::path config;
  std::filesystem::path daemon;    ///< The program; empty: the one beside this, or in PATH.
  std::filesystem::path textfile;  ///< Folder of node_exporter's textfiles; empty: none.
  std::vector<std::string> command;
};
int run_run(const RunOptions& options);

struct CheckOptions {
  std::vector<std::string> daemons;  ///< Endpoints, or HOST:PORT; none: default_endpoint().
  std::string feed;                  ///< Empty: all.
  std::uint64_t epoch = 0;
  std::chrono::duration<double> timeout{10.0};  ///< For each answer.
  KeyOptions keys;
  bool json = false;
};
int run_check(const CheckOptions& options);

struct TopOptions {
  std::vector<std::string> stats;  ///< Addresses of daemons' pages; none: those of `endpoint`.
  std::string endpoint = endpoint_of_environment();  ///< Empty: the usual address of pages.
  std::chrono::duration<double> interval{1.0};
  bool once = false;
  bool json = false;
};
int run_top(const TopOptions& options);

}  // namespace batchwright
