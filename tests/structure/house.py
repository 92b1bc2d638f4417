"""The house: its rooms, the arrows between them, their front doors, and the awkward libraries.

CONTRIBUTING.md shows the same table, and a test compares the two.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A folder with what lies below it, except for rooms of their own."""

    name: str  # also its target's name in CMake
    folder: str
    sees: tuple  # the rooms whose headers and names it may use
    doors: tuple  # what other rooms may include of it


_TABLE = (
    ("base", "formats/base", "", "base.h"),
    ("formats", "formats", "base", "formats.h batchwright/values.h"),
    ("dataset", "storage/dataset", "base formats", "dataset.h c_abi/batchwright/writer.h"),
    ("frontend", "storage/features/frontend", "base formats",
     "frontend.h front_end.h c_abi/batchwright/front_end.h"),
    ("sound", "storage/features/sound", "base formats frontend", "sound.h"),
    ("recipe", "storage/features/recipe", "base formats dataset frontend sound", "recipe.h"),
    ("ingest", "storage/ingest", "base formats dataset frontend sound", "ingest.h"),
    ("planning", "daemon/planning", "base formats", "planning.h"),
    ("live", "daemon/live", "base planning", "live.h"),
    ("stats", "daemon/stats", "base formats", "stats.h"),
    ("http", "daemon/http", "base formats stats", "http.h"),
    ("assembly", "daemon/assembly", "base formats dataset recipe planning stats", "assembly.h"),
    ("wire", "daemon/delivery/wire", "base formats stats", "wire.h"),
    ("feed", "daemon/delivery/feed", "base formats dataset recipe planning live assembly stats",
     "feed.h feed_settings.h"),
    ("delivery", "daemon/delivery", "base formats assembly stats wire feed", "delivery.h"),
    ("config", "daemon/config", "base formats dataset frontend sound recipe planning live assembly feed http",
     "config.h"),
    ("daemon", "daemon",
     "base formats dataset planning live assembly delivery feed wire stats http config", "daemon.h"),
    ("library", "client/library", "base formats",
     "batchwright/client.h batchwright/client.hpp batchwright/live.hpp"),
    ("examples", "client/examples", "dataset library", ""),
    ("command", "client/command", "base formats dataset frontend sound recipe ingest planning assembly live config library", ""),
)
ROOMS = tuple(Room(name, folder, tuple(sees.split()),
                   tuple(f"{folder}/{door}" for door in doors.split()))
              for name, folder, sees, doors in _TABLE)

# An awkward library: its headers, and the rooms that may have one file that includes them.
AWKWARD = {
    "lmdb": (r"lmdb\.h$", "dataset"),
    "cuda": (r"cuda", "assembly"),
    "zmq": (r"zmq", "wire library command"),
    "toml": (r"toml\+\+/", "config"),
    "cli": (r"CLI/", "daemon command"),
    "beast": (r"boost/beast", "http command"),
    "json_body": (r"boost/json/src\.hpp$", "base"),
    "url_body": (r"boost/url/src\.hpp$", "base"),
    "sndfile": (r"sndfile", "sound"),
    "mpg123": (r"mpg123", "sound"),
    "soxr": (r"soxr", "sound"),
    "fftw": (r"fftw3", ""),  # under the GPL: tests alone
    "isal": (r"isa-l", "base"),
    "archive": (r"archive(_entry)?\.h$", "ingest"),
}

# The one file that knows the mutexes of the standard library.
MUTEX = "formats/base/kernel/mutex.h"

# Public headers are installed as <batchwright/...>.
INSTALLED = {
    "batchwright/values.h": "formats/batchwright/values.h",
    "batchwright/writer.h": "storage/dataset/c_abi/batchwright/writer.h",
    "batchwright/front_end.h": "storage/features/frontend/c_abi/batchwright/front_end.h",
    "batchwright/client.h": "client/library/batchwright/client.h",
    "batchwright/client.hpp": "client/library/batchwright/client.hpp",
    "batchwright/live.hpp": "client/library/batchwright/live.hpp",
}

# Targets that are not named like their room.
TARGETS = {"batchwright_client": "library", "batchwright": "command", "batchwrightd": "daemon",
           "cmvn": "examples", "minimal": "examples", "edge": "examples",
           "batchwright_storage": "dataset"}

BY_NAME = {room.name: room for room in ROOMS}
_INNERMOST_FIRST = sorted(ROOMS, key=lambda room: -len(room.folder))


def room_of(path):
    """The room that the path, relative to the root, lies in; None outside of the house."""
    return next((room for room in _INNERMOST_FIRST if path.startswith(room.folder + "/")), None)


def awkward_libraries(included):
    """The awkward libraries that the header belongs to, each with the rooms that may include it."""
    return [(name, homes.split()) for name, (header, homes) in AWKWARD.items()
            if re.match(header, included)]
