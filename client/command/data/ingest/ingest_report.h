#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/command/commands.h"

namespace batchwright {

/// The result of one `batchwright ingest`.
struct IngestOutcome {
  IngestReport report;
  double seconds = 0;
  double cpu_seconds = 0;              ///< Processor time of all threads.
  std::string passed_over;             ///< Files of other kinds; empty: none.
  std::string left_out;                ///< Names and links that were not read; empty: none.
  std::string columns;                 ///< Of the transcripts, where that is not plain; or empty.
  std::vector<std::string> unmatched;  ///< For each table, the keys without a file.
};

/// Prints it on standard output, and what stopped the ingest on stderr; returns the exit code.
int report_ingest(const IngestOptions& options, const IngestOutcome& outcome);

/// "12 of 100 files  30 files/s  500 x real time", for the line of progress.
std::string ingest_rate(const IngestFigures& figures, double seconds);

}  // namespace batchwright
