"""Classifies a statement of the binlog. Determines its kind and, for DDL, the full names of the objects that it
affects.

Only the head of a statement names the affected objects. So only the head is parsed, and the clauses of ALTER TABLE. The
module knows the grammar of MySQL 9.7. A statement outside of the grammar is ``unknown``; its kind is never guessed.
"""

from collections.abc import Callable, Iterator

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.effects import (
    ELSEWHERE,
    ITS_ROWS,
    TEMPORARY,
    Effect,
    alter_table,
    connects,
    has_query,
    made_like,
    of_the_session,
)
from cdc.sql.maintenance import MAINTAIN, maintained, maintains_partitions
from cdc.sql.parser import SqlReader
from cdc.sql.tokens import tokens

__all__ = ["Effect", "classify"]

_TRANSACTION = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"}
_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "DO", "WITH", "SELECT", "TABLE", "VALUES", "HANDLER"}
_ADMIN = {"FLUSH", "CHECK", "CHECKSUM", "CACHE", "INSTALL", "UNINSTALL", "RESET"}
_OBJECTS = {
    "TABLE": "Table", "TABLES": "Table", "DATABASE": "Database", "SCHEMA": "Database", "INDEX": "Index", "VIEW": "View",
    "TRIGGER": "Trigger", "PROCEDURE": "Procedure", "FUNCTION": "Function", "EVENT": "Event", "LIBRARY": "Library",
}  # fmt: skip
_SERVER_OBJECTS = (
    ("SERVER",), ("TABLESPACE",), ("UNDO", "TABLESPACE"), ("LOGFILE", "GROUP"), ("RESOURCE", "GROUP"), ("INSTANCE",),
    ("SPATIAL", "REFERENCE", "SYSTEM"),
)  # fmt: skip
# These words may precede the kind of object, besides ALGORITHM, DEFINER and SQL SECURITY.
_ADJECTIVES = {
    "UNIQUE", "FULLTEXT", "SPATIAL", "AGGREGATE", "EXTERNAL", "MATERIALIZED", "JSON", "RELATIONAL", "DUALITY",
}  # fmt: skip


def classify(
    text: str,
    *,
    database: str,
    ansi_quotes: bool,
    backslash_escapes: bool = True,
    blanks: Blanks = NO_BLANKS,
    session_bound: bool = False,
    real: Callable[[tuple[Effect, ...]], bool] = lambda _: False,
) -> tuple[str, tuple[Effect, ...]]:
    """Returns the statement's kind and, for ``ddl``, its effects. CREATE TEMPORARY TABLE also has an effect, because it
    hides the table of the same name.

    The kinds are ``begin``, ``commit``, ``rollback``, ``rollback to``, ``savepoint``, ``xa``, ``ddl``, ``account``,
    ``admin``, ``temporary``, ``dml`` and ``unknown``. ``session_bound`` is true if the leader marked the statement as
    depending on its session. ``real`` decides whether the log proves that the effects are not on a temporary table.
    """
    found = tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    reader = SqlReader(list(found), database)
    head = reader.peek()
    if head in _TRANSACTION or reader.comes("START", "TRANSACTION"):
        return _transaction(reader), ()
    if head in _DML:
        return "dml", ()
    if _about_accounts(reader):
        return "account", ()
    if head in _ADMIN:
        return "admin", ()
    try:
        kind, effects = _definition(reader)
    except ValueError:
        return "unknown", ()
    if not session_bound:
        return kind, effects
    return kind, tuple(of_the_session(effect, real=real(effects)) for effect in effects)


def _transaction(reader: SqlReader) -> str:
    head = reader.identifier().upper()
    if head == "ROLLBACK" and (reader.take("TO") or reader.take("WORK", "TO")):
        return "rollback to"
    return {"RELEASE": "savepoint", "START": "begin"}.get(head, head.lower())


def _about_accounts(reader: SqlReader) -> bool:
    if reader.peek() in ("GRANT", "REVOKE") or reader.comes("RENAME", "USER"):
        return True
    if any(reader.comes("SET", *words) for words in (("PASSWORD",), ("DEFAULT", "ROLE"), ("ROLE",))):
        return True
    return any(reader.comes(verb, kind) for verb in ("CREATE", "ALTER", "DROP") for kind in ("USER", "ROLE"))


def _definition(reader: SqlReader) -> tuple[str, tuple[Effect, ...]]:
    if effects := maintained(reader):
        return "ddl", effects
    if reader.take("RENAME", "TABLE") or reader.take("RENAME", "TABLES"):
        return "ddl", tuple(_renames(reader))
    if reader.take("TRUNCATE"):
        reader.take("TABLE")
        return "ddl", (Effect("TruncateTable", *reader.name()),)
    verb = next((verb for verb in ("CREATE", "ALTER", "DROP") if reader.take(verb)), None)
    if verb is None:
        return "unknown", ()
    reader.take("OR", "REPLACE")
    if any(reader.take(*words) for words in _SERVER_OBJECTS):
        return "admin", ()
    if reader.take("TEMPORARY"):
        return _temporary(verb, reader)
    kind = _object_kind(reader)
    return _effects(verb.capitalize(), kind, reader)


def _temporary(verb: str, reader: SqlReader) -> tuple[str, tuple[Effect, ...]]:
    if not (reader.take("TABLE") or reader.take("TABLES")):
        return "unknown", ()
    if verb == "DROP":
        return "temporary", ()
    reader.take("IF", "NOT", "EXISTS")
    return "temporary", (Effect("CreateTable", *reader.name(), unfaithful=TEMPORARY),)


def _renames(reader: SqlReader) -> Iterator[Effect]:
    while True:
        old = reader.name()
        reader.require("TO")
        yield Effect("RenameTable", *old, to=reader.name())
        if not reader.mark(","):
            return


def _object_kind(reader: SqlReader) -> str:
    """Reads the words up to and including the kind of object. Raises ValueError for words that the grammar does not
    allow there.
    """
    while True:
        if reader.take("DEFINER"):
            reader.require_mark("=")
            reader.account()
        elif reader.take("ALGORITHM"):
            reader.require_mark("=")
            reader.identifier()
        elif reader.take("SQL", "SECURITY") or reader.peek() in _ADJECTIVES:
            reader.identifier()
        else:
            break
    kind = _OBJECTS.get(reader.peek())
    if kind is None:
        raise ValueError("the kind of object is missing")
    reader.identifier()
    return kind


def _effects(verb: str, kind: str, reader: SqlReader) -> tuple[str, tuple[Effect, ...]]:
    if not reader.take("IF", "NOT", "EXISTS"):
        reader.take("IF", "EXISTS")
    action = verb + kind
    if kind == "Database":
        return "ddl", (Effect(action, _database(reader) if verb == "Alter" else reader.identifier()),)
    if kind == "Index":
        reader.identifier()
        reader.skip_to("ON")
        return "ddl", (Effect(action, *reader.name()),)
    if verb == "Drop" and kind in ("Table", "View"):
        return "ddl", tuple(Effect(action, *name) for name in reader.names())
    name = reader.name()
    if action == "CreateFunction" and reader.comes("RETURNS"):
        # If no bracket comes before RETURNS, the statement creates a loadable function, which belongs to the server and
        # not to a database.
        return "admin", ()
    if action == "AlterTable" and _is_of_this_server(reader):
        return "admin", ()
    if action == "AlterTable" and maintains_partitions(reader):
        return "ddl", (Effect(MAINTAIN, *name),)
    if action == "AlterTable":
        return "ddl", tuple(alter_table(name, reader))
    if action == "CreateTable":
        doubt = ELSEWHERE if connects(reader) else ITS_ROWS if has_query(reader) else ""
        return "ddl", (Effect(action, *name, unfaithful=doubt, like=made_like(reader)),)
    if action == "AlterEvent":
        return "ddl", (_alter_event(name, reader),)
    return "ddl", (Effect(action, *name),)


def _database(reader: SqlReader) -> str:
    """Reads the database of ALTER DATABASE. The statement may omit the name; a reserved word then follows
    immediately."""
    return reader.database if reader.peek() in ("DEFAULT", "CHARACTER", "COLLATE", "READ") else reader.identifier()


def _is_of_this_server(reader: SqlReader) -> bool:
    """Whether an ALTER TABLE only inspects the table, or changes only the table's copy in a secondary engine."""
    return reader.peek() in ("SECONDARY_LOAD", "SECONDARY_UNLOAD") or reader.comes("CHECK", "PARTITION")


def _alter_event(name: tuple[str, str], reader: SqlReader) -> Effect:
    while reader.at < len(reader.items) and reader.peek() != "DO":  # the event's body may contain any words
        if reader.take("RENAME", "TO"):
            return Effect("RenameEvent", *name, to=reader.name())
        reader.at += 1
    return Effect("AlterEvent", *name)
