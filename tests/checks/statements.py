"""The corpus of MySQL's statement forms, data/statements.sql: each statement with what the producer must make of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc.sql.statement import Effect, classify

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


@dataclass(frozen=True)
class Said:
    """A statement of a file of data/sql, what is ``expected`` of it, and the settings above it."""

    text: str
    expected: str
    settings: Mapping[str, str]

    def __str__(self) -> str:
        return self.text[:60]


def said_in(name: str, *settings: str) -> list[Said]:
    """All statements of a file; a line ``-- databases: a b`` holds for those below it, if it is one of ``settings``."""
    found: list[Said] = []
    current: dict[str, str] = {}
    text: list[str] = []
    for line in (_FILE.parent / "sql" / name).read_text(encoding="utf-8").splitlines():
        setting, _, value = line.removeprefix("-- ").partition(":")
        if line.startswith(_EXPECTED):
            found.append(Said("\n".join(text).removesuffix(";"), line.removeprefix(_EXPECTED), dict(current)))
            text = []
        elif line.startswith("-- ") and not text:
            current |= {setting: value.strip()} if setting in settings else {}
        elif line:
            text.append(line)
    assert found and not text, f"{name}: the last statement has no end"
    return found


def all_words(effect: Effect) -> str:
    """As ``in_words``, with how rows are numbered and what else a statement does to columns."""
    more = [f"like {'.'.join(effect.like)}"] if effect.like else []
    more += ["numbered in the order of its key"] * effect.numbered + ["numbered in any order"] * effect.any_order
    more += [f"fills {effect.filled}"] * bool(effect.filled) + [f"drops {' '.join(effect.dropped)}"] * bool(
        effect.dropped
    )
    return ", ".join([in_words(effect), *more])
