"""Decides whether ALTER TABLE numbers existing rows, and whether the order of the numbers is certain. Pure.

InnoDB reads the rows of a table in the order of its primary key, and numbers them as it reads. So two servers assign
the same numbers under two conditions. Both tables must have the same primary key, and the new rows must be stored in
the order in which they are read, without sorting. They are stored in this order if the numbers are the new primary key.
(A server may copy the table or rebuild it in place. Both methods begin with the same number only if the numbers start
at 1 and grow by 1.) DROP PRIMARY KEY shows that there was a primary key. A new primary key that contains only the new
column shows that the table has no partitions, since the partitioning columns would have to be in the key.

If an existing column becomes AUTO_INCREMENT, its zeros and NULLs are replaced by numbers. If another column was
AUTO_INCREMENT before and is not dropped, the numbers continue from that column's counter. No log contains this counter.
"""

from dataclasses import replace
from itertools import pairwise

from cdc.sql.parser import SqlReader
from cdc.sql.tokens import Token

__all__ = ["dropped_columns", "filled_column", "in_order_of_key", "numbers_rows"]

_KEYS = {"INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION"}
_OPEN, _CLOSE = Token("mark", "("), Token("mark", ")")
# The clauses in _BESIDE were tested together with the numbering. The words in _OTHER_ORDER may change the order or the
# engine, in any clause.
_BESIDE = {"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "ALGORITHM", "LOCK", "COMMENT"}
_OTHER_ORDER = {"ENGINE", "ORDER", "PARTITION", "PARTITIONING"}


def numbers_rows(clause: SqlReader) -> bool:
    """Whether a clause adds an AUTO_INCREMENT column; ``clause`` is positioned after ADD. Neither AUTO_INCREMENT nor
    SERIAL is a reserved word.
    """
    if not clause.take("COLUMN") and clause.peek() in _KEYS:
        return False
    words = clause.items[clause.at :]
    return any(
        item.word() in ("AUTO_INCREMENT", "SERIAL")
        and previous.word() != "AFTER"
        and (previous.kind != "mark" or previous.text == ")")
        for previous, item in pairwise(words)
    )


def in_order_of_key(clauses: list[SqlReader]) -> bool:
    """Whether an ALTER TABLE with these clauses adds a numbered column as the new primary key. The numbers must have
    the order of the former primary key.
    """
    words = [item.word() for clause in clauses for item in clause.items[clause.at :]]
    drops = [clause for clause in clauses if clause.comes("DROP", "PRIMARY", "KEY")]
    numbers = [name for clause in clauses if (name := _numbers(clause))]
    return (
        len(drops) == 1
        and len(numbers) == 1
        and {clause.peek() for clause in clauses} <= _BESIDE
        and _OTHER_ORDER.isdisjoint(words)
        # a second AUTO_INCREMENT would be the table option, which sets the first number
        and words.count("AUTO_INCREMENT") == 1
        and _primary_key(clauses) == numbers
    )


def filled_column(clauses: list[SqlReader]) -> str:
    """Returns the old name of the column that a MODIFY or CHANGE clause makes AUTO_INCREMENT; empty if no clause does
    so."""
    for clause in clauses:
        ahead = replace(clause)
        is_change = ahead.take("CHANGE")
        if not is_change and not ahead.take("MODIFY"):
            continue
        ahead.take("COLUMN")
        name = ahead.identifier()
        # numbers_rows expects the column's name before its definition: after CHANGE the new name, otherwise the only
        # name
        ahead.at -= not is_change
        if numbers_rows(ahead):
            return name
    return ""


def dropped_columns(clauses: list[SqlReader]) -> tuple[str, ...]:
    """Returns the columns that the clauses drop."""
    found: list[str] = []
    for clause in clauses:
        ahead = replace(clause)
        if ahead.take("DROP") and (ahead.take("COLUMN") or ahead.peek() not in _KEYS):
            found.append(ahead.identifier())
    return tuple(found)


def _numbers(clause: SqlReader) -> str:
    """Returns the name, in capitals, of the column in a clause ``ADD [COLUMN] name … AUTO_INCREMENT``; empty for other
    clauses and for a column in brackets.
    """
    ahead = replace(clause)
    if not ahead.take("ADD") or not numbers_rows(replace(ahead)):
        return ""
    ahead.take("COLUMN")
    is_name = ahead.at < len(ahead.items) and ahead.items[ahead.at].kind in ("word", "quoted")
    return ahead.items[ahead.at].text.upper() if is_name else ""


def _primary_key(clauses: list[SqlReader]) -> list[str]:
    """Returns the columns, in capitals, of the primary key that the clauses add, either in the definition of a column
    or in the definition of a key.
    """
    found: list[str] = []
    for clause in clauses:
        items = clause.items[clause.at :]
        words = [item.word() for item in items]
        if words[:3] == ["ADD", "PRIMARY", "KEY"]:
            found += [item.text.upper() for item in items[3:] if item not in (_OPEN, _CLOSE)]
        elif words[:1] == ["ADD"] and ("PRIMARY", "KEY") in pairwise(words):
            found.append(_numbers(clause))
    return found
