#include "daemon/http/refusals.h"

#include <fmt/format.h>

namespace batchwright {

Reply refuse(unsigned status, const std::string& why) {
  return {status, "text/plain; charset=utf-8", why + "\n"};
}

Reply refuse_method() {
  Reply reply = refuse(405, "allowed: GET HEAD");
  reply.headers.emplace_back("Allow", "GET, HEAD");
  return reply;
}

Reply refuse_host(const HostNames& hosts, std::string_view found) {
  return refuse(421, fmt::format("host \"{}\" is not served here; allowed: {}, and "
                                 "daemon.stats_hosts of the configuration",
                                 found, hosts.text()));
}

Reply refuse_without_secret() {
  return refuse(403,
                "these pages are for the user who started the daemon; their address, with all of "
                "its path, is the one that was printed then");
}

Reply cannot_make_page(EventLog& log, const Error& fault) {
  log.note<Event::stats_page_failed>(fault.message);
  return refuse(500, "the page could not be rendered");
}

}  // namespace batchwright
