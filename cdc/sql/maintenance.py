"""Parses statements that maintain tables: REPAIR, OPTIMIZE and ANALYZE TABLE, and the corresponding clauses of ALTER
TABLE for partitions. Pure.

These statements change no row and no definition, but affect later statements. REPAIR moves rows that lie in a wrong
partition, OPTIMIZE makes room for columns that are added INSTANT, ANALYZE builds histograms. CHECK TABLE is not parsed,
because no server logs it.
"""

from collections.abc import Iterable

from cdc.sql.effects import Effect
from cdc.sql.parser import SqlReader
from cdc.sql.tokens import tokens

__all__ = ["MAINTAIN", "maintained", "maintains_partitions", "of_these_tables"]

MAINTAIN = "MaintainTable"
_VERBS = ("ANALYZE", "OPTIMIZE", "REPAIR")


def maintained(reader: SqlReader) -> tuple[Effect, ...]:
    """Returns the effects of a statement that maintains tables; empty for other statements. Raises ValueError if a name
    is missing.
    """
    if not any(reader.take(verb) for verb in _VERBS):
        return ()
    if not reader.take("NO_WRITE_TO_BINLOG"):
        reader.take("LOCAL")
    if not reader.take("TABLES"):
        reader.require("TABLE")
    return tuple(Effect(MAINTAIN, *name) for name in reader.names())


def maintains_partitions(reader: SqlReader) -> bool:
    """Whether an ALTER TABLE maintains partitions; ``reader`` is positioned after the table's name."""
    return any(reader.comes(verb, "PARTITION") for verb in _VERBS)


def of_these_tables(text: str, tables: Iterable[tuple[str, str]], *, sql_mode: str) -> str:
    """Rewrites the maintenance statement ``text`` so that it names only ``tables``, which are some of its tables. After
    the names, the statement may only have options.
    """
    modes = sql_mode.upper().split(",")
    ansi_quotes, backslash_escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    reader = SqlReader(list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)), "")
    verb = reader.peek()
    maintained(reader)
    names = ", ".join(".".join(f"`{part.replace('`', '``')}`" for part in table) for table in tables)
    return " ".join([verb, "TABLE", names, *(item.word() for item in reader.items[reader.at :])])
