"""Families of tables of a fixed shape, and random statements that suit their shape: tests/data/families.sql.

Random ALTERs of any table are in ``random_history``.
"""

import re
from functools import cache
from pathlib import Path
from random import Random

__all__ = ["FAMILIES", "FAMILIES_OF_ENGINES", "family_made", "family_used"]

_OF_ANY_ENGINE = (
    "numbers",
    "slices",
    "computed",
    "exact",
    "rounded",
    "counted",
    "hidden",
    "texts",
    "ways",
    "bulk",
    "called",
)
FAMILIES = ("kin", "branches", "abroad", "upkeep", *_OF_ANY_ENGINE)
FAMILIES_OF_ENGINES = ("engines", *_OF_ANY_ENGINE)
_FILE = Path(__file__).parents[2] / "data" / "families.sql"


def family_made(chance: Random, family: str) -> list[str]:
    """The statements that create the family's tables."""
    return _filled(chance, _headings()[f"family {family}"][0])


def family_used(chance: Random, family: str) -> list[str]:
    """Any of the family's statements, or a few that belong together."""
    return _filled(chance, chance.choice(_headings()[f"family {family}"]))


@cache
def _headings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            lines = found.setdefault(line.removeprefix("-- "), [])
        elif line:
            lines.append(line)
    return found


def _filled(chance: Random, line: str) -> list[str]:
    known: dict[str, str] = {}

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name in known:
            return known[name]
        text = re.sub(r"\{(\w+)\}", value, chance.choice(_headings()[name.rstrip("0123456789")]))
        if name[-1].isdigit():
            known[name] = text
        return text

    return re.sub(r"\{(\w+)\}", value, line).split("; ")
