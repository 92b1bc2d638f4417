"""Includes and links are arrows of the house, through front doors; libraries and mutexes have
homes.
"""

import posixpath
import re

import house
from tree import CPP, Breach

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:([<"])([^>"\n]+)[>"])?', re.MULTILINE)
_UNCHECKED = re.compile(
    r"\bstd::(?:(?:\w+_)?mutex|condition_variable|lock_guard|unique_lock|scoped_lock)\b")


def includes(tree, path):
    """The headers that a file includes: whether by quotes, and the path as of the tree's root.

    Examples are copied out of the tree, so that they include what lies beside them by its name.
    """
    folder = posixpath.dirname(path)
    copied = house.room_of(path) is house.BY_NAME["examples"]
    for quote, name in _INCLUDE.findall(tree.text(path)):
        beside = f"{folder}/{name}"
        if copied and quote == '"' and beside in tree.files:
            yield True, beside
        else:
            yield quote == '"', house.INSTALLED.get(name, name)


def check_includes(tree):
    users = {}
    for path in tree.of_kind(CPP, tests=False):
        room = house.room_of(path)
        for quoted, included in includes(tree, path):
            if not included:
                yield Breach("includes", path, f"{path}: an include that names no header")
            elif included.endswith("_generated.h"):
                if room.name != "formats":
                    yield Breach("includes", path, f"{path}: generated headers are for formats "
                                 f'alone ("{included}")')
            elif quoted or house.room_of(included):
                yield from _own(path, room, included)
            else:
                for library, homes in house.awkward_libraries(included):
                    users.setdefault((library, room.name), {})[path] = None
                    if room.name not in homes:
                        yield Breach("includes", path, f"{path}: <{included}> belongs to "
                                     f"{' '.join(homes)}, not to {room.name}")
    for (library, room), paths in users.items():
        if len(paths) > 1:
            yield Breach("includes", f"{library} in {room}", f"{library} is included by more than "
                         f"one file of {room}: {' '.join(paths)}")


def _own(path, room, included):
    target = house.room_of(included)
    if target is None:
        yield Breach("includes", path, f'{path}: "{included}" is not rooted at the project')
    elif target is room:
        return
    elif target.name not in room.sees:
        yield Breach("includes", path,
                     f'{path}: {room.name} must not include {target.name} ("{included}")')
    elif included not in target.doors:
        yield Breach("includes", path, f'{path}: "{included}" is not a front door of '
                     f"{target.name}: {' '.join(target.doors)}")


def check_mutexes(tree):
    """A mutex is house.MUTEX's: clang proves that what it guards is touched only while it is held.

    Examples are users' code.
    """
    for path in tree.of_kind(CPP, tests=False):
        if path == house.MUTEX or house.room_of(path) is house.BY_NAME["examples"]:
            continue
        for name in sorted(set(_UNCHECKED.findall(tree.code(path)))):
            yield Breach("mutexes", path, f"{path}: {name} is for {house.MUTEX} alone, whose Mutex "
                         "clang checks")


def check_links(lines):
    """`lines` are "target: link link ...", as CMake writes them."""
    for line in lines:
        target, _, links = line.partition(":")
        room = _room_of_target(target.strip())
        for link in links.split():
            linked = _room_of_target(link)
            if room and linked and linked is not room and linked.name not in room.sees:
                yield Breach("links", line, f"{room.name} must not link {linked.name}")


def _room_of_target(target):
    return house.BY_NAME.get(house.TARGETS.get(target, target))

def check_upward(tree):
    """Within a room, what a header includes of the folders above or beside its own does not lead back
    into its folder: each folder can be read after those that it builds on."""
    files = set(tree.of_kind(CPP, tests=False))
    direct = {path: {name for _, name in includes(tree, path) if name in files} for path in files}

    def reached(path, seen):
        for name in direct[path] - seen:
            seen.add(name)
            reached(name, seen)
        return seen

    closures = {path: reached(path, set()) for path in files}
    for path in tree.of_kind({".h"}, tests=False):
        folder = posixpath.dirname(path)
        for name in sorted(direct[path]):
            below = posixpath.dirname(name).startswith(f"{folder}/")
            if house.room_of(name) is not house.room_of(path) or below or \
                    posixpath.dirname(name) == folder:
                continue
            back = next((one for one in sorted(closures[name])
                         if posixpath.dirname(one) == folder), None)
            if back:
                yield Breach("upward", path, f"{path} includes {name}, which leads back to {back}")
