"""A file uses only names of rooms that its own room sees, however their headers came to it.

A header of a room that is seen may include one of a room that is not, and everything that the
latter declares can then be used without an include. Looked at are types, constants and functions
that front doors declare in the namespace `batchwright`. A name that several rooms declare is taken
for that of one which is seen, and a function's name that the file's own room declares anywhere, be
it of a method or a parameter, is not looked at: so the check may miss one, and never reports what
is right.
"""

import re

import house
from layering import includes
from tree import CPP, Breach

_USED = re.compile(r"(?:(\w+)\s*::\s*|(\.|->)\s*)?\b([A-Za-z]\w+)\b\s*(\(?)")
_TYPE_DECLARED = re.compile(
    r"\b(?:class|struct|union|enum|typename|using|concept)\s+(?:class\s+)?(?:\w+::)*(\w+)\b"
    r"(?!\s*(?:;|::))")
_VALUE_DECLARED = re.compile(r"[\w>\]&*]\s*[\s&*]\s*\b(\w+)\s*(?=[;,={(\[):])")
_NO_TYPE = re.compile(r"\b(?:return|throw|case|else|goto|delete|do|not|and|or)\s+$")


def check_names(tree):
    for room, path, name, rooms in _foreign_names(tree):
        if not rooms & set(room.sees):
            owners = " or ".join(sorted(rooms))
            yield Breach("names", f"{path}: {name}",
                         f"{path}: {name} is {owners}'s, which {room.name} does not see")


def check_arrows(tree):
    """Includes or names use every arrow of the table, and every door is there."""
    used = {(room.name, target) for room, _, _, rooms in _foreign_names(tree)
            for target in rooms if len(rooms) == 1}
    used |= {(house.room_of(path).name, house.room_of(included).name)
             for path in tree.of_kind(CPP, tests=False)
             for _, included in includes(tree, path) if house.room_of(included)}
    for room in house.ROOMS:
        for target in room.sees:
            if (room.name, target) not in used:
                yield Breach("arrows", f"{room.name} {target}", f"house.py: {room.name} uses "
                             f"nothing of {target}, so the arrow can go")
        for door in room.doors:
            if door not in tree.files:
                yield Breach("arrows", door,
                             f"house.py: {door}, a door of {room.name}, is not there")


def _foreign_names(tree):
    """Names of other rooms that files use: room, path, name, and the rooms that declare it."""
    public = _public_names(tree)
    paths_of = {}
    for path in tree.of_kind(CPP, tests=False):
        paths_of.setdefault(house.room_of(path), []).append(path)
    for room, paths in paths_of.items():
        own = set(_declared_anywhere(tree, paths))
        foreign = {name: kind for name, (kind, rooms) in public.items()
                   if room.name not in rooms and name not in own}
        for path in paths:
            for name in sorted(set(_used(tree.code(path), foreign))):
                yield room, path, name, public[name][1]


def _used(code, foreign):
    for qualifier, member, name, call in _USED.findall(code):
        if name in foreign and not member and qualifier in ("", "batchwright"):
            if call or foreign[name] != "function":
                yield name


def _declared_anywhere(tree, paths):
    for path in paths:
        code = tree.code(path)
        yield from _TYPE_DECLARED.findall(code)
        for match in _VALUE_DECLARED.finditer(code):
            name = match.group(1)
            if name[0].islower() and not _NO_TYPE.search(code, match.start(1) - 12, match.start(1)):
                yield name


def _public_names(tree):
    """Each name that front doors declare: its kind, and the rooms that declare it."""
    names = {}
    for room in house.ROOMS:
        for path in _behind_the_doors(tree, room):
            for declared in tree.parsed(path).declared:
                if declared.namespace == ("batchwright",):
                    names.setdefault(declared.name, (declared.kind, set()))[1].add(room.name)
    return names


def _behind_the_doors(tree, room):
    """The front doors and what they include of their own room."""
    reached, ahead = set(), [door for door in room.doors if door in tree.files]
    while ahead:
        path = ahead.pop()
        if path not in reached:
            reached.add(path)
            ahead += [name for _, name in includes(tree, path)
                      if name in tree.files and house.room_of(name) is room]
    return sorted(reached)
