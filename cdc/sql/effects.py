"""Describes the effect of a statement on one object: ALTER TABLE by its clauses, the numbering of rows, renamed
columns, and the maintenance of tables.

A session with ``binlog_format`` STATEMENT or MIXED logs more than DDL. It also logs statements on its temporary tables,
which hide tables of the same name, and queries that fill tables. A follower that executed these statements would differ
from the leader.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from cdc.model.names import folded
from cdc.sql.tokens import SqlReader, Token, tokens

__all__ = [
    "ANY_DATABASE",
    "COPIED_AGAIN",
    "ELSEWHERE",
    "IMPORTED",
    "ITS_ROWS",
    "LEADER_ONLY",
    "MAINTAIN",
    "TEMPORARY",
    "Effect",
    "adds_foreign_keys",
    "alter_table",
    "changed_columns",
    "connects",
    "dropped_columns",
    "filled_column",
    "folded_effect",
    "has_query",
    "in_order_of_key",
    "made_like",
    "maintained",
    "maintains_partitions",
    "needing_more",
    "numbered_otherwise",
    "numbers_rows",
    "of_the_session",
    "of_these_tables",
    "renamed_columns",
    "way_out",
    "with_rows_left_out",
]


class Effect(NamedTuple):
    """The effect of a statement. ``action`` is Create, Alter, Drop, Rename, Truncate or Maintain, followed by the kind
    of object; ``to`` is the new (database, name). Skip, followed by the kind of object, means that an event that the
    producer left out may have changed the object.

    ``like`` is the table whose definition CREATE TABLE … LIKE copies. ``unfaithful`` is the reason why a follower that
    executes the statement would differ from the leader; it is empty for most statements. ``numbered`` is true if the
    statement replaces the primary key by a new AUTO_INCREMENT column. Its numbers follow the order of the old primary
    key if the engine is InnoDB and the numbers grow by 1. ``filled`` is a column that the statement makes
    AUTO_INCREMENT, so that its zeros and NULLs are replaced by numbers. ``any_order`` is true if each server numbers
    the rows in its own order, so that the numbers are certain only if the table has at most one row. ``dropped`` lists
    the columns that the statement drops; it is set only if ``numbered``, ``filled`` or ``any_order`` is set.
    """

    action: str
    database: str
    name: str | None = None
    to: tuple[str, str] | None = None
    unfaithful: str = ""
    like: tuple[str, str] | None = None
    numbered: bool = False
    any_order: bool = False
    filled: str = ""
    dropped: tuple[str, ...] = ()


LEADER_ONLY = ("Trigger", "Event")
"""The endings of actions on objects that only the leader has. The changes that triggers and events make
arrive as rows.
"""
ANY_DATABASE = Effect("SkipDatabase", "*")  # the effect of an event about which nothing is known
ELSEWHERE = "the table's CONNECTION leads to another server, and may hold a password"
IMPORTED = "the rows of a discarded or imported tablespace are in no binlog"
_PARTITIONS = "the rows of discarded or imported tablespaces of single partitions are in no binlog"
_OWN_NUMBERS = "each server numbers the rows in an order of its own, so an added AUTO_INCREMENT column may differ"
_OWN_VALUES = "a function in it returns another value on each server"
_UNSAFE_VALUES = "a function in it returns another value at each execution"
_OWN_DIGITS = "the number of digits of a division depends on div_precision_increment, which is in no log"
_OWN_WEEKS = "the result of WEEK without a mode depends on default_week_format, which is in no log"
ITS_ROWS = "its rows were logged as a query, not as rows"
TEMPORARY = "it created a temporary table, which hides the table of the same name from later statements of its session"
_OTHER_VALUES = "it may change values by which filters.rows leaves rows out"
_FEWER_ROWS = "it numbers rows, of which followers lack those that filters.rows leaves out"
COPIED_AGAIN = frozenset({IMPORTED, _OWN_NUMBERS, _OWN_VALUES, _OWN_DIGITS, _OTHER_VALUES, _FEWER_ROWS})
"""The reasons (``Effect.unfaithful``) why only the rows of the altered table would differ: a follower can execute the
statement, if the table is copied again after it. For any other reason, a follower must not execute the statement, or it
is not known on which table the leader executed the statement.
"""

_HIDDEN = "its event does not show whether it was on the table or on a temporary table of its session with that name"
_LIKE_HIDDEN = "its event does not show whether the table after LIKE was a temporary table of its session"

# The results of these functions depend on the session. MySQL 9.7 accepts them in the default of an added column, while
# it refuses UUID() and similar functions with error 1674.
_OF_THE_SESSION = {"CONNECTION_ID", "CURRENT_ROLE", "PS_CURRENT_THREAD_ID", "ROLES_GRAPHML"}
# MySQL refuses these functions in the default of an added column (error 1674), except under binlog_format = STATEMENT.
# The results of the last two depend on the server's settings.
_UNSAFE = {
    "UUID", "UUID_SHORT", "RAND", "RANDOM_BYTES", "SYSDATE", "CURRENT_USER", "USER", "SESSION_USER", "SYSTEM_USER",
    "AES_ENCRYPT", "AES_DECRYPT", "WAIT_FOR_EXECUTED_GTID_SET", "PS_THREAD_ID", "VALIDATE_PASSWORD_STRENGTH",
}  # fmt: skip
_END = Token("mark", "")
_OPEN = Token("mark", "(")
_CALL = [Token("mark", "("), Token("mark", ")")]


def alter_table(table: tuple[str, str], reader: SqlReader) -> Iterator[Effect]:
    """Yields the effects of ALTER TABLE on ``table``; ``reader`` is positioned after the table's name. Raises
    ValueError if a name is missing.
    """
    others: list[Effect] = []
    clauses = list(replace(reader).clauses())
    numbered, filled = in_order_of_key(clauses), filled_column(clauses)
    any_order = False
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
        elif clause.comes("DISCARD", "TABLESPACE") or clause.comes("DISCARD", "PARTITION", "ALL", "TABLESPACE"):
            # DISCARD removes all rows, also on a follower. A later IMPORT brings new rows, and is refused.
            others.append(Effect("TruncateTable", *table))
        elif clause.comes("IMPORT", "TABLESPACE"):
            doubts.append(IMPORTED)
        elif clause.comes("IMPORT", "PARTITION") or clause.comes("DISCARD", "PARTITION"):
            doubts.append(_PARTITIONS)
        elif clause.take("ADD"):
            any_order = any_order or (not numbered and numbers_rows(replace(clause)))
            doubts += [_UNSAFE_VALUES] if _has_unsafe_default(clause.items) else []
            doubts += _of_settings(clause.items, adds=True)
        elif clause.take("MODIFY") or clause.take("CHANGE"):
            doubts += _of_settings(clause.items, adds=False)
    # A reason that is not in COPIED_AGAIN takes precedence, because it forbids that followers execute the statement at
    # all. For example, the text of a CONNECTION may contain a password, which must not reach a topic.
    doubt = min(doubts, key=COPIED_AGAIN.__contains__, default="")
    dropped = dropped_columns(clauses) if numbered or any_order or filled else ()
    yield Effect(
        "AlterTable", *table, unfaithful=doubt, numbered=numbered, any_order=any_order, filled=filled, dropped=dropped
    )
    yield from others


def adds_foreign_keys(effects: tuple[Effect, ...], text: str) -> bool:
    """Whether a statement may be an ALTER TABLE that adds foreign keys."""
    return any(effect.action == "AlterTable" for effect in effects) and "REFERENCES" in text.upper()


def connects(reader: SqlReader) -> bool:
    """Whether the following table options contain a CONNECTION, and the engine may be one that uses the CONNECTION.

    Only FEDERATED uses CONNECTION; for other engines it is a comment. Without ENGINE in the text the table may still be
    FEDERATED, because it already was, or because of ``default_storage_engine``. Inside brackets CONNECTION and ENGINE
    are names of columns.
    """
    found, engine, depth = False, "", 0
    rest = reader.items[reader.at :]
    for item, *after in zip(rest, rest[1:], [*rest[2:], _END], strict=False):
        depth += (item == Token("mark", "(")) - (item == Token("mark", ")"))
        value = after[1] if after[0] == Token("mark", "=") else after[0]
        if item.word() == "CONNECTION" and value.kind == "string" and not depth:
            found = True
        # The word ENGINE counts only before an equals sign, because a column may have this name.
        if item.word() == "ENGINE" and after[0] == Token("mark", "=") and not depth:
            engine = value.text.upper()
    return found and engine in ("", "FEDERATED")


def made_like(reader: SqlReader) -> tuple[str, str] | None:
    """Returns the table after LIKE in a CREATE TABLE; None for other forms. ``reader`` is positioned after the table's
    name, and is not moved.
    """
    ahead = replace(reader)
    return ahead.name() if ahead.take("LIKE") or (ahead.mark("(") and ahead.take("LIKE")) else None


def folded_effect(effect: Effect) -> Effect:
    """Returns the effect with the names that a server with ``lower_case_table_names = 1`` uses: the names of databases,
    tables and views are in lower case, other names are unchanged.
    """
    name = effect.name
    if name is not None and effect.action.endswith(("Table", "View", "Index")):
        name = folded(name)
    to, like = (each and (folded(each[0]), folded(each[1])) for each in (effect.to, effect.like))
    return effect._replace(database=folded(effect.database), name=name, to=to, like=like)


def has_query(reader: SqlReader) -> bool:
    """Whether a CREATE TABLE contains a query that fills the table; ``reader`` is positioned after the table's name."""
    # ``outermost`` is true outside of brackets. It stays true while brackets open directly one after another, as in
    # ((SELECT.
    depth, outermost = 0, True
    for before, item in pairwise([_END, *reader.items[reader.at :]]):
        word = "" if before == Token("mark", ".") else item.word()
        if word == "SELECT" or (outermost and word in ("TABLE", "VALUES", "WITH")):
            return True
        depth += (item == _OPEN) - (item == Token("mark", ")"))
        outermost = depth == 0 or (outermost and item == _OPEN)
    return False


def of_the_session(effect: Effect, *, real: bool = False) -> Effect:
    """Returns ``effect`` for a statement that the leader marked as depending on its session. In the result,
    ``unfaithful`` is set if a follower that executes the statement may therefore differ from the leader.

    The leader marks statements on temporary tables, which are logged in sessions with ``binlog_format = STATEMENT``. In
    a CALL or an event it also marks all statements that follow the first marked statement. ``real`` is true if the log
    proves that the statement was not on a temporary table; this proves nothing about the table after LIKE. In other
    binlog formats, CREATE TABLE … LIKE a temporary table is logged with the definition of that table.
    """
    if effect.like:
        return _doubted(effect, _LIKE_HIDDEN)
    if not real and effect.action in ("AlterTable", "TruncateTable", "CreateIndex", "DropIndex"):
        return _doubted(effect, _HIDDEN)
    return effect


def _doubted(effect: Effect, doubt: str) -> Effect:
    """Returns ``effect`` with the reason ``doubt`` in ``unfaithful``. If ``effect`` has a reason already that is
    not in COPIED_AGAIN, returns ``effect`` unchanged: a new copy of the table would not remove that reason.
    """
    return effect if effect.unfaithful and effect.unfaithful not in COPIED_AGAIN else effect._replace(unfaithful=doubt)


def needing_more(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Returns the effects of a statement that the leader logged with values of its session (a user variable, or a seed
    of RAND()). The effects on tables have ``unfaithful`` set, because the statement's text does not contain the values.
    """
    return tuple(_doubted(effect, _UNSAFE_VALUES) if effect.action.endswith("Table") else effect for effect in effects)


def with_rows_left_out(effect: Effect, text: str, columns: frozenset[str], *, sql_mode: str) -> Effect:
    """Returns ``effect``, an ALTER TABLE by the statement ``text``, for a table of which rows are left out by a
    condition on ``columns`` (in lower case). In the result, ``unfaithful`` is set if other rows may pass the condition
    after the statement, or if the statement numbers rows.
    """
    if effect.numbered or effect.any_order or effect.filled:
        return _doubted(effect, _FEWER_ROWS)
    changed = changed_columns(text, sql_mode=sql_mode)
    return effect if changed is not None and columns.isdisjoint(changed) else _doubted(effect, _OTHER_VALUES)


def numbered_otherwise(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Returns ``effects``; those that number rows have ``unfaithful`` set.

    Called for a table that is not in InnoDB, or if auto_increment_increment is not 1, because servers may then number
    the rows differently.
    """
    return tuple(
        effect._replace(unfaithful=effect.unfaithful or _OWN_NUMBERS) if effect.numbered or effect.any_order else effect
        for effect in effects
    )


def way_out(doubt: str) -> str:
    """Returns the hint for a statement that stops the stream, because a follower that executes it would differ from the
    leader. ``doubt`` is the reason (``Effect.unfaithful``).
    """
    if doubt in (_HIDDEN, _LIKE_HIDDEN):
        instead = "with the definition in place of LIKE" if doubt == _LIKE_HIDDEN else "on a table of InnoDB"
        return (
            "do it on the follower by hand if it was on a table, then skip it; in a procedure or an event that drops "
            f"tables, has temporary ones or asks for CONNECTION_ID(), do it in a CALL of its own or {instead}; if the "
            "session has another binlog_format: SET PERSIST binlog_format = ROW on the leader, and end such sessions"
        )
    if doubt in (ITS_ROWS, TEMPORARY):
        return (
            "some session runs with another binlog_format: SET PERSIST binlog_format = ROW on the leader, and end the "
            "sessions that are open; leave the table out with the filters, or do on the follower by hand what was meant"
        )
    if doubt == _OWN_WEEKS:
        # The server writes the mode into the definition, so a copy of the rows would not be enough.
        return "do it on the follower by hand with the mode that SHOW CREATE TABLE shows on the leader, and skip it"
    instead = "leave the table out with the filters, and on the leader copy it: CREATE TABLE new … SELECT"
    by_copy = 'set producer.on_unrepeatable = "copy", with which followers get its rows by a copy of the table; or '
    return by_copy + instead if doubt in COPIED_AGAIN else instead


def _of_settings(items: list[Token], *, adds: bool) -> list[str]:
    """Returns the reasons why values that a clause of ALTER TABLE computes for existing rows may differ on a follower.

    Such values are computed in AS (…) STORED or, if the clause adds a column (``adds``), in DEFAULT (…). They may
    differ because a division, and WEEK without a mode, depend on settings that no log contains.
    """
    heads = {"DEFAULT"} if adds else set()
    heads |= {"AS"} if any(item.word() == "STORED" for item in items) else set()
    doubts = []
    depth = 0
    for at, (before, item) in enumerate(pairwise([_END, *items])):
        if depth or (item == _OPEN and before.word() in heads):
            depth += (item == _OPEN) - (item == Token("mark", ")"))
        if depth and item == Token("mark", "/"):
            doubts.append(_OWN_DIGITS)
        if depth and item.word() == "WEEK" and _has_one_argument(items[at + 1 :]):
            doubts.append(_OWN_WEEKS)
    return doubts


def _has_one_argument(items: list[Token]) -> bool:
    """Whether ``items`` begin with a bracket that contains no comma outside of further brackets."""
    depth = 0
    for item in items:
        depth += (item == _OPEN) - (item == Token("mark", ")"))
        if depth == 0:
            return item == Token("mark", ")")
        if depth == 1 and item == Token("mark", ","):
            return False
    return False


def _has_unsafe_default(items: list[Token]) -> bool:
    """Whether a DEFAULT (…) among ``items`` contains a function whose result differs between servers."""
    depth = 0
    for before, item, after in zip([_END, *items], items, [*items[1:], _END], strict=False):
        if depth or (before.word() == "DEFAULT" and item == _OPEN):
            depth += (item == _OPEN) - (item == Token("mark", ")"))
        if depth and item.word() in _UNSAFE and (after == _OPEN or item.word() == "CURRENT_USER"):
            return True
    return False


def _asks_the_session(items: list[Token]) -> bool:
    return any(item.word() in _OF_THE_SESSION and items[at + 1 : at + 3] == _CALL for at, item in enumerate(items))


# Parses statements that maintain tables: REPAIR, OPTIMIZE and ANALYZE TABLE, and the corresponding clauses of ALTER
# TABLE for partitions.
#
# These statements change no row and no definition, but affect later statements. REPAIR moves rows that lie in a wrong
# partition, OPTIMIZE makes room for columns that are added INSTANT, ANALYZE builds histograms. CHECK TABLE is not
# parsed, because no server logs it.

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
    """Rewrites the maintenance statement ``text`` so that it names only ``tables``. The statement must name all of
    ``tables``, and after the names it may only have options.
    """
    modes = sql_mode.upper().split(",")
    ansi_quotes, backslash_escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    reader = SqlReader(list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)), "")
    verb = reader.peek()
    maintained(reader)
    names = ", ".join(".".join(f"`{part.replace('`', '``')}`" for part in table) for table in tables)
    return " ".join([verb, "TABLE", names, *(item.word() for item in reader.items[reader.at :])])


# Decides whether ALTER TABLE numbers existing rows, and whether the order of the numbers is certain.
#
# InnoDB reads the rows of a table in the order of its primary key, and numbers them as it reads. So two servers assign
# the same numbers under two conditions. Both tables must have the same primary key, and the new rows must be stored in
# the order in which they are read, without sorting. They are stored in this order if the numbers are the new primary
# key. (A server may copy the table or rebuild it in place. Both methods begin with the same number only if the numbers
# start at 1 and grow by 1.) DROP PRIMARY KEY shows that there was a primary key. A new primary key that contains only
# the new column shows that the table has no partitions, since the partitioning columns would have to be in the key.
#
# If an existing column becomes AUTO_INCREMENT, its zeros and NULLs are replaced by numbers. If another column was
# AUTO_INCREMENT before and is not dropped, the numbers continue from that column's counter. No log contains this
# counter.

_KEYS = {"INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION"}
_OPENING, _CLOSING = Token("mark", "("), Token("mark", ")")
# The clauses in _BESIDE were tested together with the numbering. The words in _OTHER_ORDER may change the order or the
# engine, in any clause.
_BESIDE = {"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "ALGORITHM", "LOCK", "COMMENT"}
_OTHER_ORDER = {"ENGINE", "ORDER", "PARTITION", "PARTITIONING"}


def numbers_rows(clause: SqlReader) -> bool:
    """Whether a clause adds an AUTO_INCREMENT column; ``clause`` is positioned after ADD. AUTO_INCREMENT and SERIAL are
    not reserved, so where a name may stand, these words do not count.
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
    """Whether an ALTER TABLE with these clauses adds an AUTO_INCREMENT column as the new primary key, and certainly
    numbers the rows in the order of the former primary key.
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
            found += [item.text.upper() for item in items[3:] if item not in (_OPENING, _CLOSING)]
        elif words[:1] == ["ADD"] and ("PRIMARY", "KEY") in pairwise(words):
            found.append(_numbers(clause))
    return found


# Finds the columns that ALTER TABLE renames or changes.


def renamed_columns(text: str, *, sql_mode: str) -> list[tuple[str, str]]:
    """Returns the old and the new names of the columns that the statement ``text`` renames."""
    found = []
    for ahead in _clauses(text, sql_mode):
        if ahead.take("CHANGE"):
            ahead.take("COLUMN")
            found.append((ahead.identifier(), ahead.identifier()))
        elif ahead.take("RENAME", "COLUMN"):
            old = ahead.identifier()
            ahead.require("TO")
            found.append((old, ahead.identifier()))
    return [(old, new) for old, new in found if old.casefold() != new.casefold()]


def changed_columns(text: str, *, sql_mode: str) -> frozenset[str] | None:
    """Returns the old and new names, in lower case, of the columns that the ALTER TABLE statement ``text`` adds, drops,
    renames or defines again. Returns None if it may change the values of any column.
    """
    try:
        clauses = _clauses(text, sql_mode)
        return frozenset(name.lower() for clause in clauses for name in _changed(clause)) if clauses else None
    except ValueError:
        return None


def _changed(clause: SqlReader) -> Iterator[str]:
    """Yields the columns that a clause of ALTER TABLE changes. Raises ValueError if it may change any column."""
    if clause.comes("CONVERT", "TO"):
        raise ValueError("it converts all columns of text")
    if clause.take("RENAME", "COLUMN"):
        yield clause.identifier()
        clause.require("TO")
        yield clause.identifier()
        return
    verb = next((each for each in ("CHANGE", "MODIFY", "ADD", "DROP") if clause.take(each)), "")
    if not verb or (not clause.take("COLUMN") and clause.peek() in _KEYS):
        return
    if verb == "ADD" and clause.mark("("):
        for part in SqlReader(clause.items[clause.at : -1], clause.database).clauses():
            if part.peek() not in _KEYS:
                yield part.identifier()
        return
    yield clause.identifier()
    if verb == "CHANGE":
        yield clause.identifier()


def _clauses(text: str, sql_mode: str) -> list[SqlReader]:
    """Returns the clauses of the ALTER TABLE statement ``text``; none if it is another statement."""
    modes = sql_mode.upper().split(",")
    ansi_quotes, backslash_escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    reader = SqlReader(list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)), "")
    if not reader.take("ALTER", "TABLE"):
        return []
    reader.name()
    return list(reader.clauses())
