"""Classifies a statement of the binlog: its kind, the objects that it affects, the tables that DML may have changed,
its accounts, and its DEFINER.

Only the head of a statement names the affected objects. So only the head is parsed, and the clauses of ALTER TABLE. The
module knows the grammar of MySQL 9.7. A statement outside of the grammar is ``unknown``; its kind is never guessed.
"""

from collections.abc import Callable, Iterator, Sequence

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.effects import (
    ANY_DATABASE,
    ELSEWHERE,
    ITS_ROWS,
    MAINTAIN,
    TEMPORARY,
    Effect,
    alter_table,
    connects,
    has_query,
    made_like,
    maintained,
    maintains_partitions,
    of_the_session,
)
from cdc.sql.text import is_lost
from cdc.sql.tokens import Span, SqlReader, Token, spans, tokens

__all__ = ["Effect", "accounts", "as_invoker", "changed_by", "classify"]

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


# Lists the tables that a DML statement in the binlog may have changed, according to the statement's text and the
# databases that were logged with it.
#
# With each such statement the server logs the databases of all tables that the statement reads or writes
# (Q_UPDATED_DB_NAMES of the Query event). This includes the tables of triggers and functions. The server logs no
# databases if there are too many, or if a foreign key refers to one of the tables. The text shows the written table, if
# a statement of this form can write to only one table. If a logged database is not named in the text, a trigger or
# function uses it, and may write there.
#
# A trigger of the written table may write to a database that the text also names. Neither source reveals such a
# trigger. A trigger is likely to write to the table's own database, so the router stops if a table of that database may
# pass the filters (cdc.producer.sink.filter_boundary.may_fire).

_OPEN, _DOT, _COMMA = Token("mark", "("), Token("mark", "."), Token("mark", ",")
_OPTIONS = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE")
_BEFORE_TABLES = {"FROM", "JOIN", "STRAIGHT_JOIN", "TABLE"}
# Words that may precede a bracket although they are not the name of a stored function. A function that is not in this
# list may change any table.
_KNOWN = frozenset(
    """
    ALL AND ANY AS BETWEEN BINARY BY CASE CHAR COLLATE DATETIME DECIMAL DEFAULT DISTINCT DIV DUPLICATE ELSE EXCEPT
    EXISTS FROM IN INDEX INTERSECT INTERVAL IS JOIN KEY LIKE LIMIT NOT ON OR OVER PARTITION REGEXP RLIKE ROW SELECT
    SET SIGNED SOME THEN UNION UNSIGNED UPDATE USING VALUE VALUES VARCHAR WHEN WHERE WITHIN XOR ABS AVG BIT_AND
    BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHARACTER_LENGTH CHARSET CHAR_LENGTH COALESCE COMPRESS
    CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COUNT CRC32 CURDATE CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYNAME
    DAYOFMONTH DAYOFWEEK DAYOFYEAR ELT EXP EXTRACT FIELD FIND_IN_SET FLOOR FORMAT FOUND_ROWS FROM_BASE64 FROM_DAYS
    FROM_UNIXTIME GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET_ATON INET_NTOA INSERT INSTR ISNULL JSON_ARRAY
    JSON_EXTRACT JSON_OBJECT JSON_SET JSON_UNQUOTE LAST_DAY LAST_INSERT_ID LCASE LEAST LEFT LENGTH LN LOCATE LOG
    LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAX MD5 MICROSECOND MID MIN MINUTE MOD MONTH MONTHNAME NOW NULLIF
    OCT OCTET_LENGTH ORD PI POSITION POW POWER QUARTER QUOTE RAND REPEAT REPLACE REVERSE RIGHT ROUND ROW_COUNT RPAD
    RTRIM SCHEMA SECOND SEC_TO_TIME SESSION_USER SHA SHA1 SHA2 SIGN SPACE SQRT STD STDDEV STRCMP STR_TO_DATE SUBDATE
    SUBSTR SUBSTRING SUBSTRING_INDEX SUM SYSDATE SYSTEM_USER TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF
    TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DAYS TRIM TRUNCATE UCASE UNCOMPRESS UNHEX UNIX_TIMESTAMP UPPER USER
    UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT VARIANCE VERSION WEEK WEEKDAY YEAR
    """.split()  # noqa: SIM905
)


def changed_by(
    text: str,
    *,
    database: str,
    databases: Sequence[str],
    ansi_quotes: bool,
    backslash_escapes: bool,
    blanks: Blanks = NO_BLANKS,
) -> tuple[Effect, ...]:
    """Returns the tables or whole databases that the statement may have changed (``SkipTable``, ``SkipDatabase``).

    ``databases`` are the databases that the leader logged with the statement; empty if it logged no databases.
    """
    if not databases or "" in databases:
        return (ANY_DATABASE,)
    whole = tuple(Effect("SkipDatabase", name) for name in databases)
    found = tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    reader = SqlReader(list(found), database)
    try:
        table = _one_table(reader)
    except ValueError:
        return whole
    rest = reader.items[reader.at :]
    if table is None or any(map(is_lost, table)) or _calls(rest):
        return whole
    named = {table[0], *_named(rest, database)}
    return (Effect("SkipTable", *table), *(each for each in whole if each.database not in named))


def _one_table(reader: SqlReader) -> tuple[str, str] | None:
    """Reads up to the table to which the statement writes, and returns its name. Returns None if the statement may
    write to several tables.
    """
    verb = reader.identifier().upper()
    while reader.peek() in _OPTIONS:
        reader.identifier()
    if verb in ("INSERT", "REPLACE"):
        reader.take("INTO")
        return reader.name()
    if verb == "LOAD":
        reader.skip_to("INTO")
        reader.require("TABLE")
        return reader.name()
    if verb == "UPDATE":
        return _alone(reader, ends=("SET",))
    if verb == "DELETE" and reader.take("FROM"):
        return _alone(reader, ends=("WHERE", "ORDER", "LIMIT", ""))
    return None


def _alone(reader: SqlReader, *, ends: tuple[str, ...]) -> tuple[str, str] | None:
    """Reads a table name. Returns it if only an alias stands between the name and one of the words ``ends``; otherwise
    returns None.
    """
    name = reader.name()
    if reader.at < len(reader.items) and reader.peek() not in ends:
        reader.take("AS")
        reader.identifier()
    at_end = reader.at >= len(reader.items)
    return name if (at_end and "" in ends) or (not at_end and reader.peek() in ends and reader.peek()) else None


def _calls(items: list[Token]) -> bool:
    """Whether the statement may call a stored function. Such a function may change tables that are not in the text."""
    # Brackets right after the table's name are not a call; in an INSERT they contain columns.
    return any(
        after == _OPEN
        # A function whose name is qualified with a database is never a built-in function.
        and (item.kind == "quoted" or (item.kind == "word" and (before == _DOT or item.word() not in _KNOWN)))
        for before, item, after in zip([Token("mark", ""), *items], items, items[1:], strict=False)
    )


def _named(items: list[Token], database: str) -> set[str]:
    """Returns the databases of the tables in the text. An unqualified table is in ``database``."""
    # Only places where a table's name may stand are read. Elsewhere a name before a dot may be an alias.
    found: set[str] = set()
    for before, item, after in zip(items, items[1:], [*items[2:], Token("mark", "")], strict=False):
        if before.word() in _BEFORE_TABLES and item.kind in ("word", "quoted"):
            found.add(item.text if after == _DOT else database)
    return found


# Shortens a statement about accounts to its command and its accounts. The result contains no secrets.

# Maps the first words of a statement to the word that precedes its accounts (manual, "Account Management Statements").
# The word is empty if the accounts follow the first words.
_FORMS = {
    ("CREATE", "USER"): "", ("ALTER", "USER"): "", ("DROP", "USER"): "", ("RENAME", "USER"): "",
    ("CREATE", "ROLE"): "", ("DROP", "ROLE"): "",
    ("GRANT",): "TO", ("REVOKE",): "FROM",
    ("SET", "PASSWORD"): "FOR", ("SET", "DEFAULT", "ROLE"): "TO", ("SET", "ROLE"): "",
}  # fmt: skip


def accounts(text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS) -> str:
    """Returns a text such as ``CREATE USER a@b, c``; empty for a statement that is not about accounts."""
    items = list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    reader = SqlReader(items, "")
    words = next((words for words in _FORMS if reader.take(*words)), None)
    if words is None:
        return ""
    try:
        found = _accounts(reader, _FORMS[words])
    except ValueError:
        found = []
    return f"{' '.join(words)} {', '.join(found)}".rstrip()


def _accounts(reader: SqlReader, after: str) -> list[str]:
    if after:
        reader.skip_to(after)
    if not reader.take("IF", "NOT", "EXISTS"):
        reader.take("IF", "EXISTS")
    found = []
    # Each comma is followed by an account or a role; a password follows its account without a comma.
    for clause in reader.clauses():
        found.append(clause.account())
        if clause.take("TO"):
            found.append(clause.account())
    return found


# Finds the changes to a statement that remove the DEFINER of a view or routine and set SQL SECURITY INVOKER. The object
# then runs with the rights of the user who calls it (manual, "Stored Object Access Control").

Change = tuple[int, int, str]
"""A part of the text, from a start to an end, and the text in place of it."""

_INVOKER = "SQL SECURITY INVOKER "
_ROUTINES = ("PROCEDURE", "FUNCTION")
_OTHERS = ("TABLE", "DATABASE", "SCHEMA", "INDEX", "TRIGGER", "EVENT")
# The words that may follow a type's name in RETURNS (_OF_TYPES), and the words that precede the name of a character set
# or collation there (_NAMED).
_OF_TYPES = {
    "UNSIGNED", "SIGNED", "ZEROFILL", "BINARY", "ASCII", "UNICODE", "BYTE", "PRECISION", "VARYING", "VARCHAR",
    "VARBINARY", "CHARACTER", "CHAR",
}  # fmt: skip
_NAMED = {"CHARSET", "COLLATE", "SET"}


def as_invoker(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> list[Change] | None:
    """Returns the changes that remove the DEFINER from a CREATE or ALTER of a view or routine and set SQL SECURITY
    INVOKER; they are in the order of the text. The list is empty for other statements. Returns None if the places of
    the changes are not certain.
    """
    found = list(spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    words = [span.token.word() for span in found]
    kind = next((at for at, word in enumerate(words) if word in ("VIEW", *_ROUTINES, *_OTHERS)), None)
    if not words or words[0] not in ("CREATE", "ALTER") or kind is None or words[kind] in _OTHERS:
        return []
    changes = _without_definer(found, words, kind)
    if words[kind] == "VIEW":
        security = _security(found, words, kind)
        return [*changes, *(security or [(found[kind].start, found[kind].start, _INVOKER)])]
    if words[0] == "ALTER":
        return _security(found, words, len(words))
    begin = _characteristics(found, words, kind)
    if begin is None:
        return None
    body = _body(found, words, begin)
    security = _security(found, words, body)
    return [*changes, *(security or [(found[body].start, found[body].start, _INVOKER)])]


def _without_definer(found: Sequence[Span], words: Sequence[str], kind: int) -> list[Change]:
    """Finds the clause ``DEFINER = account`` before the kind of the object."""
    if "DEFINER" not in words[:kind]:
        return []
    at = words.index("DEFINER")
    if at and words[at - 1] == "SECURITY":
        return []
    end = next((at for at in range(at, kind + 1) if words[at] in ("SQL", "VIEW", *_ROUTINES)), kind)
    return [(found[at].start, found[end].start, "")]


def _security(found: Sequence[Span], words: Sequence[str], end: int) -> list[Change]:
    for at in range(2, end):
        if words[at - 2 : at] == ["SQL", "SECURITY"]:
            return [(found[at].start, found[at].end, "INVOKER")]
    return []


def _characteristics(found: Sequence[Span], words: Sequence[str], kind: int) -> int | None:
    """Returns the index of the token before which a characteristic, such as SQL SECURITY, can be inserted into CREATE
    PROCEDURE or CREATE FUNCTION. Returns None if this place is not certain.
    """
    marks = [span.token.text if span.token.kind == "mark" else "" for span in found]
    at = _closed(marks, kind)
    if at is None or words[kind] == "PROCEDURE":
        return at if at is not None and at < len(found) else None
    if words[at : at + 1] != ["RETURNS"]:
        return None
    at += 2
    if marks[at : at + 1] == ["("]:
        closed = _closed(marks, at)
        if closed is None:
            return None
        at = closed
    while at < len(found) and (words[at] in _OF_TYPES or words[at] in _NAMED):
        at += 2 if words[at] in _NAMED else 1
        if marks[at : at + 1] == ["("]:
            closed = _closed(marks, at)
            if closed is None:
                return None
            at = closed
    return at if at < len(found) else None


def _closed(marks: Sequence[str], start: int) -> int | None:
    """Returns the index after the bracket that closes the first bracket from ``start`` on; None if no bracket closes
    it.
    """
    depth = 0
    for at in range(start, len(marks)):
        depth += (marks[at] == "(") - (marks[at] == ")")
        if marks[at] == ")" and depth == 0:
            return at + 1
    return None


_CHARACTERISTICS = (
    ("LANGUAGE", "SQL"), ("NOT", "DETERMINISTIC"), ("DETERMINISTIC",), ("CONTAINS", "SQL"), ("NO", "SQL"),
    ("READS", "SQL", "DATA"), ("MODIFIES", "SQL", "DATA"), ("SQL", "SECURITY", "DEFINER"),
    ("SQL", "SECURITY", "INVOKER"),
)  # fmt: skip


def _body(found: Sequence[Span], words: Sequence[str], at: int) -> int:
    """Returns the index of the first token of a routine's body, after the characteristics that begin at ``at``."""
    while at < len(found) - 1:
        if words[at] == "COMMENT" and found[at + 1].token.kind == "string":
            at += 2
            continue
        known = next((each for each in _CHARACTERISTICS if tuple(words[at : at + len(each)]) == each), None)
        if known is None:
            break
        at += len(known)
    return at
