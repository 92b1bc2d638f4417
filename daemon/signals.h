#pragma once

namespace batchwright {

// SIGTERM, SIGINT and SIGHUP from the first moment on: held back until the event loop listens to
// them, and lost at no time. Threads: the main thread, before it starts others.

/// Ignores what would end the daemon for the fault of another: SIGPIPE, whose cause the write
/// tells, and SIGXFSZ, so that a file above the limit of sizes (ulimit -f) is an error with a name.
/// Sets SIGCHLD, SIGTERM and SIGINT back from what the parent had set.
void ignore_signals();

/// Holds them back, and no others, whatever the parent's mask is; in this thread and in all that it
/// starts.
void hold_signals();

/// Whether one came that ends the daemon: then the rest of a long start can be spared.
bool is_asked_to_stop();

/// Ends the process with this code after so many seconds, unless it has ended by then: a thread
/// that waits for a file system may not come back, and is not waited for.
void end_within(unsigned seconds, int code);

/// Unblocks the signals once they have a handler: those that were held back come now.
void let_signals_in();

}  // namespace batchwright
