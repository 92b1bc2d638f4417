#pragma once

#include <cstdint>

namespace batchwright {

/// The least severe events that are logged.
enum class LogLevel : std::uint8_t { debug, info, warn, error };

/// Sends what rooms log with spdlog::info() and so on to standard error, one line an event:
/// control characters in a message are written as escapes such as \n.
/// When standard error is the journal, a line begins with its level ("<6>" for info), as journald
/// understands it; otherwise with date, time and level.
/// Threads: call once, before any other thread logs; logging itself is open to all.
void start_logging(LogLevel level);

/// Threads: any, at any time after start_logging().
void set_log_level(LogLevel level);

}  // namespace batchwright
