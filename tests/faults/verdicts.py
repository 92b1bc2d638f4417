"""What a failed call may lead to. README.md has the reasons."""
import re
import signal

# Libraries that end the process by themselves.
MAY_END = {"libzmq", "libpgm", "CUDA runtime"}
GLIBC = re.compile(r"Fatal glibc error|\w+\.c:\d+: \w+: Assertion ")

# What the daemon says of an exception that no caller on its thread takes, before it ends.
UNCAUGHT = "batchwrightd: cannot go on: "
# What it says before it ends after an exception on its event loop; SIGALRM ends it if it cannot.
LOOP_FAILED = "event loop failed: "

# Calls whose failure needs no word: of a kind, about a file, by a library, within a function.
QUIET = (
    ("open", "/(proc|sys)/", "", ""),
    ("mmap", "", "liblmdb", ""),
    ("thread", "", "", "start_thread"),
    ("send", "socket:", "libzmq", ""),
    ("send", "eventfd|pipe:", "boost", ""),
    ("send", "socket:", "", "send_with_descriptor"),
    ("malloc", "", "lib(zmq|lmdb|pgm|spdlog)|CUDA runtime", ""),
    ("malloc", "", "",
     "memory_room|memory_pressure|Readahead|ReadQueue|RowLocations|start_thread|EventPublisher::publish|resolved"
     "|look_at_data|standing_of|Cutter::finish"),
)
LAST_LINES = 3  # of the log, after which nothing can be said of them


class Broken(Exception):
    pass


class Failure:
    """A call that failed: `report` has the lines that fail_nth.c wrote, by their first word."""

    def __init__(self, frames, report):
        failed = report.get("failed", "").split()
        self.happened = bool(failed)
        self.call, self.about = (failed or [""])[0], report.get("of", "")
        self.caller = frames.caller(failed[1:])
        self.functions = frames.functions(failed[1:])
        self.aborter = frames.caller(report["aborted"].split()) if "aborted" in report else None

    def within(self, names):
        return any(re.search(names, function) for function in self.functions)

    def __str__(self):
        return " ".join(filter(None, (self.caller.owner + ":", self.caller.where, self.about)))


def of_signal(failure, number, said):
    """The process was ended by a signal: by whom."""
    if number == signal.SIGABRT and UNCAUGHT in said:
        return "an error, and the end"
    if number == signal.SIGALRM and LOOP_FAILED in said:
        return "an error, and the end after a while"
    last_line = (said.splitlines() or [""])[-1]
    if GLIBC.search(last_line):
        return f"ended by glibc ({last_line})"
    if {failure.caller.owner, (failure.aborter or failure.caller).owner} <= MAY_END:
        return f"ended by {failure.caller.owner} (signal {number}: {last_line.strip()})"
    if failure.within("__static_initialization"):
        return "ended before main()"
    raise Broken(f"signal {number} after a call of {failure}: {last_line}")


def of_silence(failure, log, calls_after):
    """All was served, and the log names nothing: why that is right."""
    if not failure.happened:
        return "not reached"
    if failure.call == "write" and failure.about == str(log) and calls_after < LAST_LINES:
        return "the log's last lines"
    for call, about, owner, function in QUIET:
        if (failure.call == call and re.search(about, failure.about)
                and re.match(owner, failure.caller.owner)
                and (not function or failure.within(function))):
            return "no matter"
    raise Broken(f"nothing is said of a call of {failure}")


def of_trouble(failure, trouble):
    """A client met trouble, and the log names nothing."""
    if failure.call in ("send", "malloc") and failure.caller.owner == "libzmq":
        return "a message is lost, and a client's time runs out"
    raise Broken(f"a client met {trouble!r}, and the log names nothing of a call of {failure}")


def of_hang(failure):
    """The process does not end when it is told to."""
    if failure.caller.owner in MAY_END:
        return f"waits for {failure.caller.owner}, and does not end"
    raise Broken(f"the daemon does not end after a call of {failure}")
