"""The corpus of MySQL's statement forms, data/statements.sql: each statement with what the producer must make of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc.sql.ddl import Effect, classify

_FILE = Path(__file__).parents[1] / "data" / "statements.sql"
_EXPECTED, _NOT_RUN = "-- -> ", "-- not run: "


@dataclass(frozen=True)
class Form:
    """One statement, and the database and sql_mode of its session.

    ``expected`` is its effects in words, or its kind where it has none; empty for one that only changes the session.
    ``not_run`` says why it isn't run on a server.
    """

    text: str
    expected: str
    database: str
    sql_mode: str
    not_run: str = ""


def forms() -> Iterator[Form]:
    """All statements of the corpus, in order."""
    lines = [line for line in _FILE.read_text(encoding="utf-8").splitlines() if line]
    database = sql_mode = ""
    text: list[str] = []
    for line, after, later in zip(lines, [*lines[1:], ""], [*lines[2:], "", ""], strict=False):
        if line.startswith("--") and not text:
            continue
        text.append(line)
        statement = "\n".join(text).removesuffix(";")
        if statement.startswith("USE "):
            database = statement.removeprefix("USE ")
        elif statement.startswith("SET sql_mode = "):
            sql_mode = statement.removeprefix("SET sql_mode = ").strip("'")
        elif not (line.endswith(";") and after.startswith(_EXPECTED)):
            continue
        expected = after.removeprefix(_EXPECTED) if after.startswith(_EXPECTED) else ""
        not_run = later.removeprefix(_NOT_RUN) if later.startswith(_NOT_RUN) else ""
        yield Form(statement, expected, database, sql_mode, not_run)
        text = []
    assert not text, f"{_FILE}: the last statement has no end"


def in_words(effect: Effect) -> str:
    """``RenameTable db.a x.b``, and whether a follower can't do the same."""
    name = effect.database if effect.name is None else f"{effect.database}.{effect.name}"
    doubt = ", not faithfully" if effect.unfaithful else ""
    return " ".join([effect.action, name, *([".".join(effect.to)] if effect.to else [])]) + doubt


def said_of(text: str, *, database: str, sql_mode: str) -> str:
    """What the producer makes of a statement: its effects in words, or its kind where it has none."""
    modes = sql_mode.split(",")
    kind, effects = classify(
        text,
        database=database,
        ansi_quotes="ANSI_QUOTES" in modes,
        backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes,
    )
    return ", ".join(map(in_words, effects)) if kind == "ddl" else kind
