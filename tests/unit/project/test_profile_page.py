"""docs/profile.md has every key of a profile, with its default, and no other one; and each can be set."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc.config.profile import Profile, Tls

PAGE = (Path(__file__).parents[3] / "docs/profile.md").read_text(encoding="utf-8")


def default_of(key: Field[Any]) -> Any:
    return key.default if key.default is not MISSING else key.default_factory()  # type: ignore[misc]


def rows(kind: Any, path: str = "") -> Iterator[str]:
    """The head of each key's row in the README's table."""
    for key in fields(kind):
        if not key.init:
            continue
        default = Tls() if key.name == "tls" else default_of(key)
        if is_dataclass(default):
            yield from rows(default, f"{path}{key.name}.")
        else:
            yield f"| `{path}{key.name}` | `{json.dumps(default)}` |"


def test_every_key_is_documented_with_its_default() -> None:
    missing = [row for row in rows(Profile()) if row not in PAGE]
    assert missing == []


def test_nothing_is_documented_that_is_not_there() -> None:
    documented = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(documented) == len(list(rows(Profile())))


@pytest.mark.parametrize("row", list(rows(Profile())))
def test_each_key_can_be_set(row: str) -> None:
    """Also one with the name of a table, as web.metrics."""
    _, key, _, default, _ = row.split("`")
    table, _, name = key.rpartition(".")
    if default == "{}":  # a table itself
        Profile.parse(f"[{key}]", name="p")
    else:
        Profile.parse(f"[{table}]\n{name} = {default}" if table else f"{name} = {default}", name="p")
