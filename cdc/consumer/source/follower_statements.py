"""Rewrites a statement of the leader to the form in which this follower must execute it.

Changes the names of databases (``[renames]``), the engines of tables (``consumer.engine``), the tablespaces of
tables, and the definers of views and routines if the user may not choose them (``consumer.privileges``). CREATE
TABLESPACE is not replicated, so the leader's tablespaces do not exist on the follower; the rows of a table are the same
in any tablespace.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import replace

from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.session import version_text
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.source.statement_check import parsed, quoting, spliced
from cdc.model.record import Record, Uri
from cdc.model.server_version import makes_column_references
from cdc.service.logs import event
from cdc.sql.create_table import Option, column_references, table_options
from cdc.sql.effects import MAINTAIN, of_these_tables
from cdc.sql.statement import as_invoker
from cdc.sql.tokens import excerpt, spans, tokens

__all__ = ["FollowerStatements", "maintained_here", "only_maintains", "quoted_names", "with_same_keys"]

_LOG = logging.getLogger("cdc.consumer")
# Words that MySQL 8.0 does not know, and that newer servers have reserved (information_schema.KEYWORDS).
_RESERVED_SINCE_80 = frozenset({"EXTERNAL", "LIBRARY", "QUALIFY", "TABLESAMPLE"})
_MAY_HAVE_ONE = re.compile("|".join(_RESERVED_SINCE_80), re.I)
_NEWER_THAN_80 = 80_100
_OWN = "innodb_file_per_table"  # the tablespace of a table in its own file has this name on every server
_EVERYWHERE = {_OWN, "innodb_system"}
_INNODB, _OTHER = "InnoDB", "other"  # the values of ``engine`` in the context of a record
_CHANGED = {"MYISAM", "MEMORY", "HEAP", "ARCHIVE", "CSV"}
_ELSEWHERE = {
    "MERGE": "its rows are those of other tables",
    "MRG_MYISAM": "its rows are those of other tables",
    "FEDERATED": "its rows are on another server",
    "BLACKHOLE": "the leader keeps none of its rows",
}


class FollowerStatements:
    """Rewrites the leader's statements for the follower. ``renaming`` changes the names of databases. If ``engine`` is
    "InnoDB", tables with an engine without transactions become InnoDB tables. Unless ``definers`` is true, views and
    routines get the consumer's user as their definer, and the rights of the user who calls them.

    ``changes_engines`` is true if the follower's tables may have another engine than the leader's.
    """

    def __init__(self, renaming: Renaming, *, engine: str, definers: bool = True) -> None:
        self._renaming = renaming
        self._definers = definers
        self._innodb = self.changes_engines = engine == _INNODB

    def notes(self, *, after: int, through: int) -> list[Statement]:
        """Returns the statements that update the table of the leader's names from sequence ``after`` to ``through``;
        empty unless the follower stores names in lower case.
        """
        spellings = self._renaming.spellings
        return spellings.notes(after=after, through=through) if spellings else []

    def of(self, record: Record) -> Record:
        """Returns a replicated Query record with the statement that the follower must execute.

        Raises Unapplicable for a table that would behave differently in InnoDB, and the errors of
        ``Renaming.statement``.
        """
        renamed = self._renaming.statement(record)
        if not self._definers:
            renamed = _of_invoker(renamed)
        options = table_options(parsed(renamed), **quoting(renamed))
        changed = [(option, value) for option in options if (value := self._value(option, record))]
        if self._innodb or (renamed.context or {}).get("engine") == _OTHER:
            _check_foreign_keys(renamed, options, {value for _, value in changed})
        if not changed:
            return renamed
        changes = sorted({f"{option.name} {option.value.token.text} to {value}" for option, value in changed})
        event(
            _LOG, "statement changed for the follower", sequence=record.sequence, statement=excerpt(record.query),
            changes=", ".join(changes),
        )  # fmt: skip
        for option, value in reversed(changed):
            renamed = spliced(renamed, option.value.start, option.value.end, value)
        return renamed

    def _value(self, option: Option, record: Record) -> str | None:
        """Returns the value of the option on the follower; None if it is the leader's value."""
        value = option.value.token.text
        if option.name == "TABLESPACE" and value.lower() not in _EVERYWHERE:
            return _OWN
        if option.name != "ENGINE" or not self._innodb:
            return None
        if value.upper() in _ELSEWHERE:
            raise Unapplicable(
                f"a table of the engine {value} can't become one of InnoDB, {_ELSEWHERE[value.upper()]}: "
                f"{excerpt(record.query)}",
                code="CDC-ENGINE-NOT-INNODB",
                record=record,
                hint="leave the table out with filters.exclude_tables",
            )
        return _INNODB if value.upper() in _CHANGED else None


def with_same_keys(record: Record, *, version: int, leader: Callable[[], str]) -> Record:
    """Removes foreign keys from column definitions if the leader has ignored them and the follower, of ``version``,
    would create them. ``leader()`` returns the leader's present version; it is called if the record does not contain
    whether the leader has created them.

    Raises Unapplicable if the leader has created them and the follower would ignore them.
    """
    found = column_references(parsed(record), **quoting(record))
    if not found:
        return record
    there = (record.context or {}).get("column_references")
    if there is None:
        there = makes_column_references(leader())
    if there in (makes_column_references(version_text(version)), None):
        return record
    if there:
        raise Unapplicable(
            f"MySQL {version_text(version)} ignores a foreign key in the definition of a column, which the leader "
            f"makes: {excerpt(record.query)}",
            code="CDC-STATEMENT-COLUMN-REFERENCES",
            record=record,
            hint="run it on the follower by hand, with CONSTRAINT … FOREIGN KEY … as SHOW CREATE TABLE shows it on the "
            "leader, if it does, and continue with --skip",
        )
    event(
        _LOG, "statement changed for the follower", sequence=record.sequence, statement=excerpt(record.query),
        changes="REFERENCES removed from column definitions, because the leader (MySQL before 9.0) ignores it",
    )  # fmt: skip
    for start, end in reversed(found):
        record = spliced(record, start, end, "")
    return record


def quoted_names(record: Record, *, version: int, leader: Callable[[], str]) -> Record:
    """Quotes the names in a statement of a MySQL 8.0 leader that are reserved words on a follower of ``version``.
    ``leader()`` returns the leader's present version.

    MySQL 8.0 does not know these words, so in its statements they can only be names.
    """
    if version < _NEWER_THAN_80 or not _MAY_HAVE_ONE.search(record.query) or not leader().startswith("8.0."):
        return record
    found = [span for span in spans(parsed(record), **quoting(record)) if span.token.word() in _RESERVED_SINCE_80]
    if found:
        names = ", ".join(dict.fromkeys(span.token.text for span in found))
        event(
            _LOG, "statement changed for the follower", sequence=record.sequence, statement=excerpt(record.query),
            changes=f"{names} in backquotes, since this server reserves what MySQL 8.0 does not",
        )  # fmt: skip
    for span in reversed(found):
        record = spliced(record, span.start, span.end, f"`{span.token.text}`")
    return record


def _of_invoker(record: Record) -> Record:
    """Removes the definer from a statement about a view or routine. The object then runs with the rights of its caller.

    This is necessary because the consumer's user becomes the definer, and has more rights than callers have. Raises
    Unapplicable if the place of the definer in the statement is not certain.
    """
    changes = as_invoker(parsed(record), **quoting(record))
    if changes is None:
        raise Unapplicable(
            f"the definer of a view or routine can't be changed for certain: {excerpt(record.query)}",
            code="CDC-STATEMENT-DEFINER",
            record=record,
            hint="create the object on the follower by hand, with SQL SECURITY INVOKER, and continue with --skip",
        )
    for start, end, text in reversed(changes):
        record = spliced(record, start, end, text)
    return record


def only_maintains(record: Record) -> bool:
    """Whether the statement only maintains tables, like OPTIMIZE TABLE, so that it may be executed for only some of its
    tables.
    """
    return bool(record.affects) and all(affect["action"] == MAINTAIN for affect in record.affects)


def maintained_here(record: Record, passes: Callable[[Uri], bool]) -> Record:
    """Limits a statement that maintains tables to the tables that are replicated to this follower; returns other
    records unchanged.
    """
    uris = [Uri.parse(affect["uri"]) for affect in record.affects]
    wanted = [uri for uri in uris if passes(uri)]
    if not only_maintains(record) or len(wanted) == len(uris):
        return record
    context = record.context or {}
    names = [(uri.database, uri.table or "") for uri in wanted]
    text = of_these_tables(parsed(record), names, sql_mode=context.get("sql_mode", ""))
    spoken = {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    return replace(record, query=text, exact=None, context=context | spoken)


def _check_foreign_keys(record: Record, options: list[Option], values: set[str]) -> None:
    """Raises Unapplicable if InnoDB would enforce foreign keys that the leader's engine ignores or might ignore."""
    engine = (record.context or {}).get("engine")
    if engine == _INNODB:
        return
    words = [token.word() for token in tokens(parsed(record), **quoting(record))]
    named = any(option.name == "ENGINE" for option in options)
    doubtful = engine == _OTHER or words[:2] == ["ALTER", "TABLE"]
    if "REFERENCES" not in words or (_INNODB not in values and (named or not doubtful)):
        return
    raise Unapplicable(
        f"the follower's table would enforce a foreign key that the leader's may ignore: {excerpt(record.query)}",
        code="CDC-ENGINE-FOREIGN-KEY",
        record=record,
        hint="run the statement on the follower by hand, without the foreign keys unless the leader's table is InnoDB",
    )
