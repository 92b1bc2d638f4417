#pragma once

#include <cstdint>
#include <functional>

#include "daemon/config/config.h"

namespace batchwright {

/// Sends what rooms log with spdlog::info() and so on to standard error, one line an event:
/// control characters in a message are written as escapes such as \n.
/// When standard error is the journal, a line begins with its level ("<6>" for info), as journald
/// understands it; otherwise a sentence begins with date, time, zone and level.
/// A JSON object has `time` (RFC 3339, with zone), `level` and `message`; `event`, its name in
/// /stats, of what is an event; and `feed` and `session` of an event that has one.
/// Threads: call once, before any other thread logs; logging itself is open to all.
void start_logging(Severity least, LogFormat format = LogFormat::text);

/// Threads: any, at any time after start_logging().
void set_logging(Severity least, LogFormat format);

/// Lines that were dropped because standard error did not take them; logging never waits for who
/// reads it. Threads: any.
std::uint64_t dropped_log_lines();

/// Is called, on any thread, with the number of lines that were dropped before standard error took
/// lines again. It must not log; null ends the calls. Threads: any.
void on_log_room(std::function<void(std::uint64_t)> callback);

}  // namespace batchwright
