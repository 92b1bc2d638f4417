"""Files, folders, functions and classes keep to their limits, and a TODO has an issue's number."""

import ast
import collections
import re

import house
from layering import includes
from tree import CPP, SOURCES, Breach

MOST_LINES = 400
MOST_FILES = 25
MOST_MEMBERS = 15
MOST_METHODS = 40
MOST_FUNCTION_LINES = 70
FEW_LINES = 40

_TODO = re.compile(r"TODO(?!\(\d+\))")


def check_files(tree):
    for path in tree.of_kind(SOURCES | {".cmake", ".fbs", ".css"}):
        lines = tree.text(path).count("\n")
        if lines > MOST_LINES:
            yield Breach("files", path, f"{path}: {lines} lines, at most {MOST_LINES}", lines)


def check_todos(tree):
    for path in tree.of_kind(SOURCES | {".cmake", ".fbs", ".css"}):
        if _TODO.search(tree.text(path)) and not path.startswith("tests/structure/"):
            yield Breach("todos", path, f"{path}: a TODO without an issue number: TODO(123)")


def check_folders(tree):
    count = collections.Counter(path.rpartition("/")[0] for path in tree.of_kind(SOURCES))
    for folder, files in sorted(count.items()):
        if files > MOST_FILES:
            yield Breach("folders", folder,
                         f"{folder}: {files} source files, at most {MOST_FILES}", files)


def check_functions(tree):
    for path in tree.of_kind(CPP):
        for function in tree.parsed(path).functions:
            name = _title(tree.text(path), function) or function.name
            yield from _function(path, name, function.first, function.last)
    for path in tree.of_kind({".py"}):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _function(path, node.name, node.lineno, node.end_lineno)


def _title(text, function):
    """The sentence of a test, which stands in the lines before its braces."""
    if function.name != "TEST_CASE":
        return None
    lines = text.splitlines()[max(0, function.first - 4):function.first]
    return " ".join(re.findall(r'"([^"]*)"', "\n".join(lines).rpartition("TEST_CASE")[2]))


def _function(path, name, first, last):
    if last - first > MOST_FUNCTION_LINES:
        yield Breach("functions", f"{path}: {name}", f"{path}:{first}: {name} has {last - first} "
                     f"lines, at most {MOST_FUNCTION_LINES}", last - first)


def check_members(tree):
    """Classes, and structs that hide members: a struct of values may have as many as it needs."""
    for path in tree.of_kind(CPP):
        for scope in tree.parsed(path).classes:
            members = [name for name in scope.members if name.endswith("_")]
            if len(members) > MOST_MEMBERS:
                yield Breach("members", f"{path}: {scope.name}",
                             f"{path}:{scope.line}: {scope.name} has {len(members)} data members, "
                             f"at most {MOST_MEMBERS}", len(members))


def check_methods(tree):
    for path in tree.of_kind(CPP):
        for scope in tree.parsed(path).classes:
            if scope.methods > MOST_METHODS:
                yield Breach("methods", f"{path}: {scope.name}",
                             f"{path}:{scope.line}: {scope.name} has {scope.methods} methods, "
                             f"at most {MOST_METHODS}", scope.methods)


def check_small_files(tree):
    """A header with little in it, its source included, serves two files at least, or is one of those
    that a front door shows."""
    users = collections.defaultdict(set)
    for path in tree.of_kind(CPP):
        for _, included in includes(tree, path):
            users[included].add(path)
    doors = {door for room in house.ROOMS for door in room.doors}
    for path in tree.of_kind({".h"}, tests=False):
        source = path[:-len(".h")] + ".cpp"
        lines = sum(tree.text(each).count("\n") for each in (path, source) if each in tree.files)
        others = users[path] - {source}
        if lines < FEW_LINES and len(others) == 1 and not others & doors:
            yield Breach("small", path, f"{path} has {lines} lines and serves {others.pop()} alone: "
                         "it can be a part of that")


def check_forwarders(tree):
    """A class that has methods, and all of them only call a method of one and the same member."""
    for path in tree.of_kind({".h"}, tests=False):
        for scope in tree.parsed(path).classes:
            if scope.methods >= 2 and scope.forwards == scope.methods and len(scope.members) == 1:
                yield Breach("forwarders", f"{path}: {scope.name}",
                             f"{path}:{scope.line}: {scope.name} only forwards to "
                             f"{scope.members[0]}")
