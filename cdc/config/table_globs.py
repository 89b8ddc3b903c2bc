"""Matches tables against the profile's globs ``db.table``, whose names may be in backquotes.

A glob without backquotes is compared with the whole text ``db.table``. In a glob with backquotes, the database and the
table are compared separately, so that a name may contain a dot. Inside backquotes, too, ``*``, ``?`` and ``[…]`` are
globs; two backquotes mean one backquote, as in SQL.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from glob import escape
from shlex import quote
from typing import Self

from cdc.errors import UserError
from cdc.model.names import folded

__all__ = ["TABLE_FORM", "TableGlobs", "copy_command", "named", "selected", "table_named", "unquoted"]

TABLE_FORM = "DATABASE.TABLE; a name with a dot is in backquotes, `my.db`.orders"
_NAME = r"`(?:[^`]|``)+`|[^`.]+"
_QUOTED = re.compile(rf"({_NAME})\.({_NAME})")


@dataclass(frozen=True, slots=True)
class TableGlobs:
    """Compiled globs. ``whole`` matches the text ``db.table``, each pair in ``pairs`` matches a database and a table,
    and ``databases`` lists the database part of each glob.
    """

    whole: re.Pattern[str]
    pairs: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    databases: tuple[str, ...]

    @classmethod
    def of(cls, globs: Iterable[str], *, key: str, names_database: bool) -> Self:
        """Compiles the globs of the profile key ``key``; if ``names_database`` is true, each glob must contain the
        database.

        Raises UserError for a glob in which the two names cannot be distinguished.
        """
        whole, pairs, databases = [], [], []
        for glob in globs:
            if "`" in glob:
                found = _QUOTED.fullmatch(glob)
                if found is None:
                    raise _mistake(glob, key, "has backquotes, but does not name a database and a table")
                database, table = map(unquoted, found.groups())
                pairs.append((re.compile(translate(database)), re.compile(translate(table))))
                databases.append(database)
                continue
            if names_database and glob.count(".") != 1:
                raise _unclear(glob, key)
            whole.append(translate(glob))
            databases.append(glob.partition(".")[0])
        return cls(re.compile("|".join(whole) or r"(?!)"), tuple(pairs), tuple(databases))

    def match(self, database: str, table: str) -> bool:
        """Whether a glob matches the table."""
        if self.whole.match(f"{database}.{table}"):
            return True
        return any(first.match(database) and second.match(table) for first, second in self.pairs)


def selected(tables: Iterable[tuple[str, str]], globs: Iterable[str], *, key: str) -> list[tuple[str, str]]:
    """Returns the ``tables`` that match one of the globs, in the same order; ``key`` is the option with the globs, for
    errors.

    A glob that matches no table is compared again regardless of case, since a server with ``lower_case_table_names =
    1`` stores and logs names only in lower case. Raises the errors of ``TableGlobs.of``.
    """
    tables, found = list(tables), set[tuple[str, str]]()
    for glob in globs:
        exact, any_case = (TableGlobs.of([each], key=key, names_database=True) for each in (glob, folded(glob)))
        matched = [table for table in tables if exact.match(*table)]
        found.update(matched or [table for table in tables if any_case.match(*map(folded, table))])
    return [table for table in tables if table in found]


def unquoted(name: str) -> str:
    """Removes the backquotes around a name or glob, if there are any."""
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if quoted else name


def copy_command(*tables: tuple[str, str]) -> str:
    """Returns the shell command that copies exactly these tables again. The names in it are quoted, since they may
    contain any character.
    """
    globs = (named(escape(database), escape(table)) for database, table in tables)
    return "cdc-producer PROFILE " + " ".join(f"--copy {quote(glob)}" for glob in globs)


def named(database: str, table: str) -> str:
    """Writes ``db.table``. The names are in backquotes if the text could otherwise be misread, mistaken for a
    command line option, or lose the blanks at its ends."""
    names, text = (database, table), f"{database}.{table}"
    if text.startswith("-") or text != text.strip() or any("." in name or "`" in name for name in names):
        return ".".join(f"`{name.replace('`', '``')}`" for name in names)
    return text


def table_named(text: str) -> tuple[str, str] | None:
    """Parses a text that ``named`` returned; returns None for a text that is not the name of a table."""
    if found := _QUOTED.fullmatch(text):
        return unquoted(found[1]), unquoted(found[2])
    return None


def _unclear(glob: str, key: str) -> UserError:
    if "." not in glob:
        return UserError(
            f"{glob!r} names no table",
            code="CDC-PROFILE-TABLE-NAME",
            where=f"profile key {key}",
            hint=f'tables are named with their database: "db.{glob}", or "*.{glob}" for any',
        )
    return _mistake(glob, key, "does not show which of its dots ends the database's name")


def _mistake(glob: str, key: str, what: str) -> UserError:
    return UserError(
        f"{glob!r} {what}",
        code="CDC-PROFILE-TABLE-NAME",
        where=f"profile key {key}",
        hint='put backquotes around a name with a dot: "`my.db`.orders", "`my.db`.*", "db.`my.orders`"',
    )
