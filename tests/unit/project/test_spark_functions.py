"""Functions of Spark that cost more than they look: none is in a query of ours."""

import ast
import re
from pathlib import Path

import pytest

import cdc

# With the first of them a JVM makes a table of the case of all characters (CollationAwareUTF8String), for 1.4 s.
_CASE = re.compile("lower|upper|lcase|ucase|initcap|ilike", re.IGNORECASE)
_FOLDER = Path(cdc.__file__).parent
_MODULES = sorted(file for part in ("spark", "lake", "seed") for file in (_FOLDER / part).rglob("*.py"))


def _called(tree: ast.Module) -> set[str]:
    """The functions ``F.…`` that a module names, and what calls of functions its texts with SQL may have."""
    found = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "F"
    }
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return found | {name for text in texts for name in re.findall(r"\b(\w+)\(", text)}


@pytest.mark.parametrize("module", _MODULES, ids=lambda file: str(file.relative_to(_FOLDER)))
def test_no_query_changes_the_case_of_texts(module: Path) -> None:
    names = _called(ast.parse(module.read_text(encoding="utf-8")))
    assert not [name for name in names if _CASE.fullmatch(name)]


def test_such_a_call_would_be_found() -> None:
    source = 'F.lower("a"); F.expr("concat(ucase(a), b)"); "ilike(a, b)"; text.lower()'
    assert {name for name in _called(ast.parse(source)) if _CASE.fullmatch(name)} == {"lower", "ucase", "ilike"}
