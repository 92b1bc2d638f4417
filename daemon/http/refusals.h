#pragma once

#include <string>
#include <string_view>

#include "daemon/http/host_names.h"
#include "daemon/http/routes.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// An answer of plain text, with a line that says why.
Reply refuse(unsigned status, const std::string& why);
Reply refuse_method();
Reply refuse_host(const HostNames& hosts, std::string_view found);
Reply refuse_without_secret();
/// For a page whose route failed; the log is told.
Reply cannot_make_page(EventLog& log, const Error& fault);

}  // namespace batchwright
