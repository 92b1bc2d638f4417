#include "daemon/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/stats/stats.h"
#ifdef SPDLOG_COMPILED_LIB  // the library has sinks with a mutex of the standard's alone
#include <spdlog/sinks/base_sink-inl.h>
#endif

namespace batchwright {

namespace {

using Buffer = spdlog::memory_buf_t;

void append(Buffer& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

/// The message with its control characters as escapes: names that clients choose can neither
/// begin a line of their own nor speak to a terminal.
class OneLine : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, Buffer& out) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\n') {
        append(out, "\\n");
      } else if (byte < 0x20 || byte == 0x7F) {
        fmt::format_to(std::back_inserter(out), "\\x{:02X}", byte);
      } else {
        out.push_back(c);
      }
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

/// The members of a JSON object behind time and level.
class JsonMembers : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, Buffer& out) override {
    // Set only while an event is logged, and on this thread: other lines have none.
    if (const EventFields* fields = fields_of_line()) {
      add(out, "event", fields->event);
      add(out, "feed", fields->feed);
      add(out, "session", fields->session);
    }
    const std::string_view text(message.payload.data(), message.payload.size());
    append(out, ",\"message\":");
    // Names come from clients and file systems; a line that is not UTF-8 is no JSON.
    append(out, boost::json::serialize(boost::json::value(utf8(text))));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMembers>();
  }

 private:
  /// Nothing for an empty value: not every event has a feed or a session.
  static void add(Buffer& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
    append(out, boost::json::serialize(boost::json::value(utf8(value))));
  }
};

/// "<6>" and so on, as sd-daemon(3) numbers the levels.
class JournalLevel : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, Buffer& out) override {
    out.push_back('<');
    out.push_back(digit(message.level));
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalLevel>();
  }

 private:
  static char digit(spdlog::level::level_enum level) {
    switch (level) {
      case spdlog::level::critical: return '2';
      case spdlog::level::err: return '3';
      case spdlog::level::warn: return '4';
      case spdlog::level::info: return '6';
      // sd-daemon(3) has nothing below debug.
      default: return '7';
    }
  }
};

/// Whether standard error is the very stream that systemd connected to the journal, and not one
/// that was redirected since: JOURNAL_STREAM holds its device and inode.
bool writes_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

std::unique_ptr<spdlog::formatter> formatter_of(LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<OneLine>('*').add_flag<JournalLevel>('J').add_flag<JsonMembers>('Q');
  // The journal adds time and name by itself, and takes the level off.
  const bool journal = writes_to_journal();
  const std::string text = journal ? "%J%*" : "%Y-%m-%d %H:%M:%S.%e%z %l %*";
  const std::string json = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l"%Q})";
  formatter->set_pattern(format == LogFormat::text ? text : (journal ? "%J" : "") + json);
  return formatter;
}

/// Standard error, whose reader is not waited for. The library's asynchronous logger would send
/// every line through another thread, where the fields of an event are not known, and a daemon that
/// ends abruptly would lose its last lines; and its end waits for a reader.
class StandardError : public spdlog::sinks::base_sink<Mutex> {
 public:
  LineStream& stream() { return stream_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    Buffer line;
    formatter_->format(message, line);
    stream_.write({line.data(), line.size()});
  }
  void flush_() override {}

  LineStream stream_{STDERR_FILENO};
};

/// The one that is logged to; null before start_logging().
std::shared_ptr<StandardError>& standard_error() {
  static std::shared_ptr<StandardError> current;
  return current;
}

}  // namespace

std::uint64_t dropped_log_lines() {
  return standard_error() ? standard_error()->stream().dropped() : 0;
}

void on_log_room(std::function<void(std::uint64_t)> callback) {
  if (standard_error()) standard_error()->stream().on_room(std::move(callback));
}

void start_logging(Severity least, LogFormat format) {
  standard_error() = std::make_shared<StandardError>();
  auto logger = std::make_shared<spdlog::logger>("batchwrightd", standard_error());
  logger->set_formatter(formatter_of(format));
  spdlog::set_default_logger(std::move(logger));
  log_from(least);
}

void set_logging(Severity least, LogFormat format) {
  // The sink takes its lock for this: a line of another thread has the one format or the other.
  spdlog::default_logger_raw()->set_formatter(formatter_of(format));
  log_from(least);
}

}  // namespace batchwright
