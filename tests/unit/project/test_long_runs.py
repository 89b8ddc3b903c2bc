"""What only `make test-long` runs: it does run it, and `make test` keeps a test of each promise."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.project.test_limits import ROWS

TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent
FILES = [path for folder in ("integration", "spark") for path in sorted((TESTS / folder).rglob("test_*.py"))]


def functions(path: Path) -> Iterator[tuple[ast.FunctionDef, list[str]]]:
    """The tests of a file, each with the sources of its marks."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node, [ast.unparse(each) for each in node.decorator_list]


LONG = {
    f"{path.relative_to(TESTS)}::{test.name}": test
    for path in FILES
    for test, marks in functions(path)
    if "pytest.mark.long" in marks
}


def test_there_are_some() -> None:
    assert LONG


def test_make_runs_them() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^LONG := CDC_LONG=1 ", text, re.M)
    assert re.search(r"^test-long: .*\n\t\$\(LONG\) \$\(MAKE\) integration$", text, re.M)
    assert text.count("CDC_LONG") == 1, "make test runs them, too"


@pytest.mark.parametrize("name", LONG)
def test_it_says_which_test_make_test_has_instead(name: str) -> None:
    """By the names of tests or of their files, which are there."""
    told = ast.get_docstring(LONG[name]) or ""
    named = re.findall(r"\b(test_\w+)(?:\.(?!py\b)(test_\w+))?", told.partition("`make test`")[2])
    assert named, told
    for file, function in named:
        path, there = next((each for each in FILES if each.stem == file), None), function or file
        text = (path or TESTS / name.partition("::")[0]).read_text(encoding="utf-8")
        assert (path and not function) or f"\ndef {there}(" in text, there
        assert not any(each.endswith(f"::{there}") and path in (None, TESTS / each.partition("::")[0]) for each in LONG)


def test_of_each_matrix_something_is_always_tried() -> None:
    for path in FILES:
        for test, marks in functions(path):
            for mark, node in zip(marks, test.decorator_list, strict=True):
                if "in_long_runs" not in mark:
                    continue
                assert isinstance(node, ast.Call) and isinstance(node.args[1], ast.List), mark
                values = [ast.unparse(each) for each in node.args[1].elts]
                assert not all(each.startswith("in_long_runs(") for each in values), f"{path}: {test.name}"


@pytest.mark.parametrize(("name", "named"), ROWS, ids=[name for name, _ in ROWS])
def test_a_known_fault_is_tested_always(name: str, named: str) -> None:
    tests = re.findall(r"`([^`]+)`", named)
    assert [test for test in tests if test not in LONG], f"{name}: only long runs have {tests}"
