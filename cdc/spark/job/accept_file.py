"""Reads the TOML file of ``--accept``: it lists the drift that is known and wanted. docs/audit.md explains its keys."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cdc.config.table_globs import TableGlobs
from cdc.config.toml_tables import parsed
from cdc.errors import UserError
from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, SKIPPED_EVENT, Entry

__all__ = ["accepted_drift"]

_KINDS = ("missing", "extra", "different")
_MOST_KEYS = 1_000


def accepted_drift(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of the file. Raises UserError for an entry that does not follow docs/audit.md."""
    where = f"option --accept {path}"
    try:
        content = parsed(path.read_text(encoding="utf-8-sig"), name=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the file: {error}", code="CDC-AUDIT-ACCEPT-FILE", where=where) from None
    tables = content.pop("accept", [])
    if content or not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise UserError(
            "the file holds something else than tables [[accept]]",
            code="CDC-AUDIT-ACCEPT-FILE",
            where=where,
            hint="begin each entry with [[accept]]",
        )
    entries = tuple(_entry(number, each, f"{where}: entry {number}") for number, each in enumerate(tables, start=1))
    if sum(len(each.keys or ()) for each in entries) > _MOST_KEYS:
        raise UserError(f"the file names more than {_MOST_KEYS:,} keys", code="CDC-AUDIT-ACCEPT-FILE", where=where,
                        hint="accept such rows by their kind or by the columns that differ")  # fmt: skip
    return entries


def _entry(number: int, table: Mapping[str, Any], where: str) -> Entry:
    for key in table.keys() - _READ.keys():
        near = get_close_matches(key, _READ, n=1, cutoff=0.0)[0]
        raise UserError(
            f"unknown key {key}", code="CDC-AUDIT-ACCEPT-FILE", where=where, hint=f"the nearest known key is {near!r}"
        )
    for key in ("what", "name", "reason"):
        if key not in table:
            raise UserError(
                f"there is no {key}",
                code="CDC-AUDIT-ACCEPT-FILE",
                where=where,
                hint="each entry has what, name and reason",
            )
    values = {}
    for key, value in table.items():
        try:
            values[key] = _READ[key](value)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{key}: {error}", code="CDC-AUDIT-ACCEPT-FILE", where=where, hint=f"write {_EXAMPLES[key]}"
            ) from None
    entry = Entry(number, **values)
    _require_sense(entry, where)
    return entry


def _require_sense(entry: Entry, where: str) -> None:
    """Raises UserError for conditions that do not fit the drift that the entry accepts."""
    for key, what in (("kinds", ROWS), ("columns", ROWS), ("keys", ROWS), ("statements", DEFINITION)):
        if getattr(entry, key) is not None and what not in entry.what:
            raise UserError(
                f"{key} is about {what}, which the entry does not accept",
                code="CDC-AUDIT-ACCEPT-FILE",
                where=where,
                hint=f"add {what!r} to what, or remove {key}",
            )
    if entry.columns is not None and entry.kinds not in (None, ("different",)):
        raise UserError(
            "columns is about rows that are different, kinds about others",
            code="CDC-AUDIT-ACCEPT-FILE",
            where=where,
            hint="remove kinds, or make another entry",
        )
    if "." in entry.name or "`" in entry.name:
        TableGlobs.of([entry.name], key="accept.name", names_database=True)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError("it is no text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError("it is no list of texts")
    return tuple(_text(each) for each in value)


def _of(known: Sequence[str]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        found = _texts([value] if isinstance(value, str) else value)
        for each in found:
            if each not in known:
                raise ValueError(f"{each!r} is none of {', '.join(known)}")
        return found

    return read


def _day(value: Any) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError("it is no day")
    return value


def _keys(value: Any) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) and each for each in value):
        raise TypeError("it is no list of keys")
    for key in value:
        for column, each in key.items():
            if not isinstance(each, int | str) or isinstance(each, bool):
                raise TypeError(f"{column} is neither a whole number nor text")
    return tuple({column: str(each) for column, each in key.items()} for key in value)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "what": _of((ROWS, DEFINITION, SKIPPED_EVENT)), "name": _text, "reason": _text, "until": _day,
    "kinds": _of(_KINDS), "columns": _texts, "keys": _keys, "statements": _texts,
}  # fmt: skip
_EXAMPLES = {
    "what": f'"{ROWS}", "{DEFINITION}", "{SKIPPED_EVENT}" or a list of them', "name": '"shop.order" or "shop.*"',
    "reason": '"asked for by the report team, ticket 42"', "until": "2027-01-31, without quotes",
    "kinds": '["extra"]', "columns": '["note"]', "keys": "[{id = 5}, {id = 7}]",
    "statements": '["CREATE INDEX by_day ON order (day)"]',
}  # fmt: skip
