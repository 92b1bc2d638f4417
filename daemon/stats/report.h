#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/stats/events.h"
#include "daemon/stats/process_stats.h"
#include "daemon/stats/status.h"
#include "formats/formats.h"

namespace batchwright {

// What /stats and /metrics show beside ServerStatus, which the daemon fills in once a request.

/// The program's version and build.
struct BuildStats {
  std::string compiler;
  bool cuda = false;
};

/// Changes of the configuration while the daemon ran.
struct ReloadStats {
  std::uint64_t applied = 0;
  std::uint64_t refused = 0;
  double taken_unix_seconds = 0.0;          ///< Time at which the served configuration was taken.
  std::optional<std::string> last_refusal;  ///< Why; kept until one is applied.
  std::optional<std::chrono::duration<double>>
      last_ago;  ///< Time since the last one, applied or not.
};

/// The figures of the HTTP server.
struct HttpStats {
  std::uint32_t connections = 0;  ///< Open now.
  std::uint64_t requests = 0;     ///< Answered with a page.
  std::uint64_t refused = 0;      ///< Answered with an error (400 and up), or not at all.
};

/// The disk that a feed's journal, ledger or record lies on.
struct DiskStats {
  std::string feed;
  std::string_view file;         ///< "journal", "ledger" or "record".
  std::string path;              ///< Path of the file.
  std::uint64_t free_bytes = 0;  ///< Left for users other than root.
  std::uint64_t size_bytes = 0;  ///< Size of the file system.
};

/// Something that keeps the daemon from being ready.
struct NotReady {
  std::string feed;  ///< Empty: it concerns all of them.
  std::string why;
};

struct StatsSource : ServerStatus {
  std::string version;
  std::string commit;     ///< That it was built from; empty: from no checkout.
  std::string host;       ///< This machine's name.
  std::uint32_t uid = 0;  ///< The user that it runs as.
  std::chrono::duration<double> uptime{0};
  std::chrono::steady_clock::time_point started{};
  double started_unix_seconds = 0.0;  ///< Start time since 1970.
  ProcessStats process;
  std::uint64_t memory_ceiling_bytes = 0;
  std::uint64_t arena_bytes = 0;    ///< Memory of all feeds' arenas.
  std::vector<NotReady> not_ready;  ///< Empty: it is ready.
  BuildStats build;
  std::uint64_t log_lines_dropped = 0;  ///< Standard error did not take them.
  const EventLog* events = nullptr;     ///< Lives as long as the call; null: nothing happened.
  ReloadStats reload;
  HttpStats http;
  std::vector<DiskStats> disks;  ///< One for each of these files that can be measured.
};

/// The name of a session in the log.
std::string name_of(SessionId session);
/// Batches that the client may still get before it releases one.
std::uint32_t credit_of(const SubscriberStatus& subscriber);
/// Clients that were turned away: by the allow-list, for their keys, or since there are too many.
std::uint64_t clients_refused(const StatsSource& source);
/// The page /stats: one JSON object as REFERENCE.md describes it, UTF-8 whatever bytes clients call
/// themselves by.
std::string render_stats(const StatsSource& source);
/// The page /history, which README.md describes.
std::string render_history(const StatsSource& source);

/// The type of the page /metrics, for the header of the answer.
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
/// The page /metrics: Prometheus' text format 0.0.4 as README.md and REFERENCE.md describe it.
/// Every metric is there from the start; those of feeds and subscribers have a line for each.
std::string render_metrics(const StatsSource& source);

}  // namespace batchwright
