#pragma once

#include <string>
#include <string_view>

#include "daemon/http/routes.h"

namespace batchwright {

/// The head of an answer in HTTP/1.0 or 1.1, with the length of the body; `reason` is the status in
/// words. It is not to be cached, for figures are old at once, nor taken for another type. Beast's
/// own way to write, for bodies of every form, is much code. Threads: any.
std::string head_of(const Reply& reply, std::string_view reason, bool is_version_1_0,
                    bool keep_alive);

/// The head of a stream of events, and its first line. The stream has no length: it ends with its
/// connection.
std::string events_head();

}  // namespace batchwright
