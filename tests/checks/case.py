"""Cases: files of SQL in which each statement is followed by the records that it must become.

A line ``-- -> {…}`` gives a record's JSON, as far as the case cares: keys that it leaves out may have any value.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "cases"
_RECORD = "-- -> "


@dataclass
class Case:
    """Statements in order, and all the records they become; ``name`` is the leader's too."""

    name: str
    statements: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


def load(path: Path) -> Case:
    """A statement ends with a semicolon at the end of a line.

    A follower takes a leader's name once, so each case's leader is called as its file is; in the file it is mysql-srv1.
    """
    case = Case(path.stem)
    statement: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(_RECORD):
            case.records.append(
                json.loads(line.removeprefix(_RECORD).replace("flv://mysql-srv1/", f"flv://{case.name}/"))
            )
        elif line.strip() and not line.startswith("--"):
            statement.append(line)
            if line.endswith(";"):
                case.statements.append("\n".join(statement)[:-1])
                statement = []
    assert not statement, f"{path}: the last statement has no end"
    return case


def cases() -> list[Path]:
    """All case files."""
    return sorted(FOLDER.glob("*.sql"))


def as_far_as(wanted: Any, found: Any) -> Any:
    """``found`` reduced to the keys that ``wanted`` has, at every depth of objects."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {key: as_far_as(value, found.get(key)) for key, value in wanted.items()}
    return found
