"""The modules of a Python package import each other in one direction only.

An import within a function, or for type checkers alone, counts like any other: two modules that
know of each other cannot be understood, or changed, one by one.
"""

import ast

from tree import Breach

PACKAGE = "client/python/batchwright"


def check_circles(tree):
    modules = {_module(path): path for path in tree.of_kind({".py"})
               if path.startswith(PACKAGE + "/")}
    imports = {name: sorted(_imports(tree, name, path, modules)) for name, path in modules.items()}
    for circle in _circles(imports):
        shown = " -> ".join([*circle, circle[0]])
        yield Breach("circles", " ".join(circle), f"{PACKAGE}: modules import in a circle: {shown}")


def _module(path):
    """The name of a file's module below the package; that of the package itself is empty."""
    name = path[len(PACKAGE) + 1:-len(".py")].replace("/", ".")
    return name.removesuffix("__init__").removesuffix(".")


def _imports(tree, name, path, modules):
    package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(tree.text(path))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package.split(".") if package else []
            base = base[:len(base) - node.level + 1] + (node.module or "").split(".")
            base = ".".join(part for part in base if part)
            for alias in node.names:
                inner = ".".join(part for part in (base, alias.name) if part)
                yield from (found for found in (inner if inner in modules else base,)
                            if found in modules and found != name)


def _circles(imports):
    """Each set of modules that reach each other, as one path through them."""
    for name in sorted(imports):
        path = _way_back(imports, name)
        if path and name == min(path):
            yield path


def _way_back(imports, start):
    """The shortest way from a module to itself, without the way's end; None where there is none."""
    ahead, reached = [[start]], set()
    for path in ahead:
        for following in imports[path[-1]]:
            if following == start:
                return path
            if following not in reached:
                reached.add(following)
                ahead.append([*path, following])
    return None
