"""What the tests replace in the program is there: a name that is gone would be set, and nothing would be tested."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.consumer.follower import locks
from tests.altered.replaced import replace

FOLDER = Path(__file__).parents[2]


def set_directly(path: Path) -> Iterator[str]:
    """Names of the program's modules to which a file assigns."""
    tree = ast.parse(path.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "")[:3] == "cdc"]
    names = {each.asname or each.name for node in found for each in node.names}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in names:
                yield f"{path.relative_to(FOLDER)}:{node.lineno}: {ast.unparse(target)}"


def test_a_name_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "SILENT_SECONDS", locks.SILENT_SECONDS)  # put back afterwards
    with pytest.raises(AssertionError, match="has no _SILENT_SECONDS"):
        replace(locks, "_SILENT_SECONDS", 1)
    with pytest.raises(AssertionError, match="already"):
        replace(locks, "SILENT_SECONDS", locks.SILENT_SECONDS)
    replace(locks, "SILENT_SECONDS", 1)
    assert locks.SILENT_SECONDS == 1


def test_nothing_is_replaced_without_asking_whether_it_is_there() -> None:
    """By ``replace`` or by monkeypatch, which both ask."""
    assert [place for path in sorted(FOLDER.rglob("*.py")) for place in set_directly(path)] == []
