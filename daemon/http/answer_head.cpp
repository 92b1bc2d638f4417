#include "daemon/http/answer_head.h"

#include <fmt/format.h>

namespace batchwright {
namespace {

/// How a connection goes on behind an answer, in the words of the request's HTTP.
std::string_view connection_of(bool is_version_1_0, bool keep_alive) {
  if (is_version_1_0) return keep_alive ? "Connection: keep-alive\r\n" : "";
  return keep_alive ? "" : "Connection: close\r\n";
}

}  // namespace

std::string head_of(const Reply& reply, std::string_view reason, bool is_version_1_0,
                    bool keep_alive) {
  std::string head = fmt::format(
      "HTTP/1.{} {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n",
      is_version_1_0 ? 0 : 1, reply.status, reason, reply.content_type);
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + fmt::format("{}Content-Length: {}\r\n\r\n",
                            connection_of(is_version_1_0, keep_alive), reply.body.size());
}

std::string events_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
         "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\nretry: 2000\n\n";
}

}  // namespace batchwright
