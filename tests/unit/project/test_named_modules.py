"""Docstrings name modules and their content (``plan.chunk_plan``, ``net_effects.as_left``): all of that exists."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc.config.profile import Profile

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"``((?:[a-z_]\w*\.)+[a-z_]\w*)(?:\([^`]*\))?``")
PLAIN = re.compile(r"\b((?:[a-z_]\w*\.)+[a-z_]\w*)\b")
FILE_ENDINGS = ("json", "toml", "py", "sql")
TABLES = ("cdc.checkpoint", "cdc.conflicts", "cdc.ledger", "cdc.names")


def modules() -> dict[str, str]:
    """The text of each module, by its name."""
    paths = sorted((ROOT / "cdc").rglob("*.py"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return {name: path.read_text(encoding="utf-8") for name, path in zip(names, paths, strict=True)}


def ends(texts: dict[str, str]) -> dict[str, list[str]]:
    """The texts of the modules and packages that have a name or end with it: plan.chunk_plan, covering."""
    found = defaultdict(list)
    for module, text in texts.items():
        words = module.removesuffix(".__init__").split(".")
        for first in range(len(words)):
            found[".".join(words[first:])].append("" if module.endswith(".__init__") else text)
    return found


def docstrings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def keys_of_profiles(values: Any, path: str = "") -> Iterator[str]:
    for key in fields(values):
        value = getattr(values, key.name)
        yield f"{path}{key.name}"
        if is_dataclass(value):
            yield from keys_of_profiles(value, f"{path}{key.name}.")


KNOWN = ends(modules())
OTHERS = {*keys_of_profiles(Profile()), *TABLES}


def is_there(name: str) -> bool:
    """Whether a module has this name, or the end of it, or has a thing that is called so."""
    head, _, thing = name.rpartition(".")
    return name in KNOWN or any(re.search(rf"\b{thing}\b", text.replace(name, "")) for text in KNOWN.get(head, ()))


def dead(text: str, found: re.Pattern[str] = NAME) -> list[str]:
    """The names in the docstrings of a module's text that are of no module, no profile key and no table."""
    named = [name for each in docstrings(text) for name in found.findall(each)]
    ours = [name for name in named if name.split(".")[0] in KNOWN and not name.endswith(FILE_ENDINGS)]
    return [name for name in ours if name not in OTHERS and not is_there(name)]


def test_what_docstrings_name_is_there() -> None:
    # The map of the packages, in cdc/__init__.py, names them without quotes.
    found = {name: dead(text, PLAIN if name == "cdc.__init__" else NAME) for name, text in modules().items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_a_name_that_points_nowhere_is_found() -> None:
    text = '"""Sees ``plan.no_such``, ``no_such.plan``, ``plan.chunk_plan`` and ``net_effects.as_left(records)``."""'
    assert dead(text) == ["plan.no_such"]


@pytest.mark.parametrize("bench", sorted((ROOT / "bench").rglob("*.py")), ids=str)
def test_what_benches_import_is_there(bench: Path) -> None:
    """No type checker reads them, and nothing runs them all."""
    for node in ast.walk(ast.parse(bench.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cdc"):
            module = importlib.import_module(node.module or "")
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []
