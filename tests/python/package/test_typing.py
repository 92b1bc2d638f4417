"""Annotations: complete, as mypy checks them, and no syntax that Python 3.9 does not know."""

import ast
import importlib.util
import os
import subprocess
import sys

import pytest

import served

PACKAGE = served.ROOT / "client" / "python" / "batchwright"
EXAMPLES = served.ROOT / "client" / "examples"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *EXAMPLES.glob("*.py")])
OLDEST = (3, 9)  # as requires-python of pyproject.toml says


def missing(*modules):
    return [each for each in modules if importlib.util.find_spec(each) is None]


@pytest.mark.skipif(missing("mypy", "torch"),
                    reason=f"not installed: {', '.join(missing('mypy', 'torch'))}")
def test_mypy_finds_nothing_in_package_and_examples():
    paths = os.pathsep.join([str(PACKAGE.parent), str(EXAMPLES)])
    cache = os.path.join(os.environ["BATCHWRIGHT_BUILD"], "mypy_cache")  # torch takes half a minute
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, PACKAGE,
         *sorted(EXAMPLES.glob("*.py"))], env={**os.environ, "MYPYPATH": paths}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_python_3_9_can_read_it(source):
    ast.parse(source.read_text(), str(source), feature_version=OLDEST)


def test_a_statement_of_python_3_10_is_seen():
    with pytest.raises(SyntaxError, match="3.10"):
        ast.parse("match 1:\n    case 1:\n        pass", feature_version=OLDEST)


def annotations_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.returns
            yield from (each.annotation for each in [*node.args.args, *node.args.kwonlyargs])
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_annotations_are_not_evaluated(source):
    """So that they may have forms which an older Python or NumPy cannot evaluate."""
    tree = ast.parse(source.read_text())
    if any(annotations_of(tree)):
        assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__"
                   and node.names[0].name == "annotations" for node in tree.body)
