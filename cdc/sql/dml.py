"""Lists the tables that a DML statement in the binlog may have changed, according to the statement's text and the
databases that were logged with it.

With each such statement the server logs the databases of all tables that the statement reads or writes
(Q_UPDATED_DB_NAMES of the Query event). This includes the tables of triggers and functions. The server logs no
databases if there are too many, or if a foreign key refers to one of the tables. The text shows the written table, if a
statement of this form can write to only one table. If a logged database is not named in the text, a trigger or function
uses it, and may write there.

A trigger of the written table may write to a database that the text also names. Neither source reveals such a trigger.
It is likely to write to the table's own database, so the router stops if a table of that database may pass the filters
(cdc.producer.sink.filter_boundary.may_fire).
"""

from collections.abc import Sequence

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.parser import SqlReader
from cdc.sql.text import is_lost
from cdc.sql.tokens import Token, tokens

__all__ = ["changed_by"]

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
