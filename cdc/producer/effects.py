"""What a statement does to one object, and what an ALTER TABLE does by its clauses."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from cdc.producer.sql_reader import SqlReader
from cdc.sql_tokens import Token

__all__ = ["ELSEWHERE", "Effect", "alter_table", "connects"]


class Effect(NamedTuple):
    """``action`` is Create, Alter, Drop, Rename or Truncate and the kind of object; ``to`` the new (database, name).

    ``unfaithful`` says why a follower that executes the statement would not become what the leader is; mostly empty.
    """

    action: str
    database: str
    name: str | None = None
    to: tuple[str, str] | None = None
    unfaithful: str = ""


ELSEWHERE = "the table's CONNECTION leads to another server, and may hold a password"
_NO_ROWS = "the rows of a tablespace that comes or goes are in no binlog"
_OWN_NUMBERS = "each server numbers the rows in an order of its own, so an added AUTO_INCREMENT column may differ"
_OWN_VALUES = "each server has another answer to a function in it"

# Functions that MySQL 9.7 takes in the default of an added column (it refuses UUID() and the like with error 1674).
_OF_THE_SESSION = {"CONNECTION_ID", "CURRENT_ROLE", "PS_CURRENT_THREAD_ID", "ROLES_GRAPHML"}
_END = Token("mark", "")
_CALL = [Token("mark", "("), Token("mark", ")")]
_KEYS = {"INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION"}


def alter_table(table: tuple[str, str], reader: SqlReader) -> Iterator[Effect]:
    """The effects of ALTER TABLE on ``table``, from behind its name. Raises ValueError where a name is missing."""
    others: list[Effect] = []
    doubts = [_OWN_VALUES] if _asks_the_session(reader.items) else []
    doubts += [ELSEWHERE] if connects(reader) else []
    for clause in reader.clauses():
        if clause.take("RENAME") and clause.peek() not in ("COLUMN", "INDEX", "KEY"):
            if not (clause.take("TO") or clause.take("AS")):
                clause.mark("=")
            others.append(Effect("RenameTable", *table, to=clause.name()))
        elif clause.take("EXCHANGE", "PARTITION"):
            clause.skip_to("TABLE")
            others.append(Effect("AlterTable", *clause.name()))
        elif any(clause.comes(verb, kind) for verb in ("DISCARD", "IMPORT") for kind in ("TABLESPACE", "PARTITION")):
            doubts.append(_NO_ROWS)
        elif clause.take("ADD") and _numbers_rows(clause):
            doubts.append(_OWN_NUMBERS)
    yield Effect("AlterTable", *table, unfaithful=next(iter(doubts), ""))
    yield from others


def connects(reader: SqlReader) -> bool:
    """Whether the table option CONNECTION comes, with [=] and a string; in brackets it is a column's name."""
    depth = 0
    rest = reader.items[reader.at :]
    for item, *after in zip(rest, rest[1:], [*rest[2:], _END], strict=False):
        depth += (item == Token("mark", "(")) - (item == Token("mark", ")"))
        value = after[1] if after[0] == Token("mark", "=") else after[0]
        if item.word() == "CONNECTION" and value.kind == "string" and not depth:
            return True
    return False


def _asks_the_session(items: list[Token]) -> bool:
    return any(item.word() in _OF_THE_SESSION and items[at + 1 : at + 3] == _CALL for at, item in enumerate(items))


def _numbers_rows(clause: SqlReader) -> bool:
    """Whether ADD [COLUMN] adds an AUTO_INCREMENT column; neither word of its two forms is reserved in MySQL."""
    if not clause.take("COLUMN") and clause.peek() in _KEYS:
        return False
    words = clause.items[clause.at :]
    return any(
        item.word() in ("AUTO_INCREMENT", "SERIAL")
        and previous.word() != "AFTER"
        and (previous.kind != "mark" or previous.text == ")")
        for previous, item in pairwise(words)
    )
