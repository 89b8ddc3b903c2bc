"""Maps MySQL types to Spark types, and makes the Spark expressions that convert a value's JSON text in a record."""

from collections.abc import Callable
from dataclasses import dataclass

from cdc.errors import UserError
from cdc.model.charset import text_decoder
from cdc.sql.column_types import ColumnType, read_type

__all__ = ["DOUBT", "Options", "literal", "spark_type", "typed"]

DOUBT = "?"
"""The first character of a text that is not a value, but the reason why the value is not certain."""

_INTEGERS = {
    "tinyint": ("TINYINT", "SMALLINT"), "smallint": ("SMALLINT", "INT"), "mediumint": ("INT", "INT"),
    "int": ("INT", "BIGINT"), "bigint": ("BIGINT", "DECIMAL(20,0)"),
}  # fmt: skip
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_CHOICES = {
    "zero_dates": ("error", "null", "string"), "on_alter": ("error", "null"), "typed_json": ("error", "null", "record"),
    "json": ("string", "variant"),
}  # fmt: skip
_MAX_DIGITS = 38  # digits of Spark's DECIMAL
_DAY = "year INT, month INT, day INT"
_CLOCK = "hour INT, minute INT, second INT, subsecond INT"
# ``subsecond`` is a number of microseconds. The pattern matches only 0 and numbers of six digits, since only these are
# also the digits after the decimal point; a shorter number lacks leading zeros.
_YEAR_TO_DAY, _FRACTION = '"year":([0-9]{4}),"month":([0-9]+),"day":([0-9]+)', '"subsecond":(?:0|([0-9]{6}))'
_TIME_OF_DAY = '"hour":([0-9]+),"minute":([0-9]+),"second":([0-9]+)'
_FORMS = {
    "date": (f'^[{{]"Date":[{{]{_YEAR_TO_DAY}[}}][}}]$', "$1-$2-$3", "DATE"),
    "datetime": (
        f'^[{{]"DateTime":[{{]{_YEAR_TO_DAY},{_TIME_OF_DAY},{_FRACTION}[}}][}}]$', "$1-$2-$3 $4:$5:$6.$7",
        "TIMESTAMP_NTZ",
    ),
    "timestamp": (f'^[{{]"Timestamp":[{{]"unix_time":([1-9][0-9]*),{_FRACTION}[}}][}}]$', "$1.$2", "DECIMAL(18,6)"),
}  # fmt: skip
"""Maps each temporal type to a regular expression for its JSON, a replacement text made of the expression's groups, and
the Spark type to which this text can be cast."""

Fails = Callable[[str], str]
"""Returns SQL that raises an error; the argument is the SQL of the reason."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices of how to convert values that Spark can't represent.

    ``zero_dates`` applies to 0000-00-00 and to dates that no calendar has: "error" raises an error that names the row,
    "null" returns NULL, and "string" converts all values of such columns to strings. ``on_alter`` applies to values
    that an ALTER changed without logging a record: "error" or "null". ``typed_json`` applies to JSON documents with
    members of SQL types, such as DATE: "error", "null", or "record", which returns the record's text {"JsonTyped": …}.
    ``json`` is the type of JSON documents: "string", their text, or "variant", Spark's VARIANT.
    """

    zero_dates: str = "error"
    on_alter: str = "error"
    typed_json: str = "error"
    json: str = "string"

    def __post_init__(self) -> None:
        """Raises UserError for values that are not allowed."""
        for name, allowed in _CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise UserError(
                    f"no such choice of {name}: {value!r}",
                    code="CDC-TABLE-ARGUMENT",
                    hint=f"one of {', '.join(allowed)}",
                )


def literal(text: str) -> str:
    """Quotes ``text`` as a string literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_type(text: str, options: Options) -> str:
    """Returns the Spark type, in Spark's DDL, for a MySQL type as records contain it."""
    kind = read_type(text)
    name = kind.name
    if name in _INTEGERS:
        return _INTEGERS[name][kind.unsigned]
    if name == "decimal":
        return "DECIMAL({},{})".format(*kind.numbers) if kind.numbers[0] <= _MAX_DIGITS else "STRING"
    if name == "bit":
        return "BIGINT" if kind.numbers[0] < 64 else "DECIMAL(20,0)"
    if name in _TEXTS:
        return "STRING" if _is_text(kind) else "BINARY"
    if name == "json" and options.json == "variant":
        return "VARIANT"
    if options.zero_dates == "string" and name in ("date", "datetime", "timestamp"):
        return "STRING"
    return {
        "float": "FLOAT", "double": "DOUBLE", "year": "INT", "date": "DATE", "datetime": "TIMESTAMP_NTZ",
        "timestamp": "TIMESTAMP", "time": "INTERVAL DAY TO SECOND", "json": "STRING", "enum": "STRING",
        "set": "ARRAY<STRING>",
    }.get(name, "BINARY")  # fmt: skip


def typed(value: str, type_text: str, *, where: str, options: Options) -> str:
    """Returns the SQL that converts a column's value. ``value`` is the SQL of the value's JSON text; ``where`` is the
    SQL of a text that names the column and the row in errors."""
    kind, to = read_type(type_text), spark_type(type_text, options)

    def fails(why: str) -> str:  # a function, since names in ``where`` may contain braces
        return f"CAST(raise_error(concat({where}, ': ', {why})) AS {to})"

    doubt = "NULL" if options.on_alter == "null" else fails(f"substring({value}, {len(DOUBT) + 1})")
    other = fails(f"concat('this value cannot be converted to {to}: ', left({value}, 200))")
    cases = [(f"{value} IS NULL OR {value} = 'Null'", "NULL"), *_cases(kind, value, to, fails, options)]
    cases.append((f"startswith({value}, {literal(DOUBT)})", doubt))
    whens = " ".join(f"WHEN {condition} THEN {result}" for condition, result in cases)
    return f"CAST(CASE {whens} ELSE {other} END AS {to})"


def _is_text(kind: ColumnType) -> bool:
    return kind.charset == "default" or text_decoder(kind.charset or "") is not None


def _content(value: str, tag: str, *, quoted: bool = False) -> str:
    """Returns the SQL of the value of the key ``tag`` in a JSON text, without its quotes if it is ``quoted``."""
    start = len(f'{{"{tag}":') + quoted
    return f"substring({value}, {start + 1}, length({value}) - {start + 1 + quoted})"


def _is(value: str, tag: str, more: str = "") -> str:
    begins = f'{{"{tag}":{more}'
    return f"startswith({value}, {literal(begins)})"


def _parsed(value: str, tag: str, kind: str) -> str:
    """Returns the SQL of the value of the key ``tag`` in a JSON text, parsed as the Spark type ``kind``. By default
    Spark's parser returns NULL for a text of more than 20 million characters."""
    return f"from_json({value}, '{tag} {kind}', map('maxStringLen', '{(1 << 31) - 1}')).{tag}"


def _once(parsed: str, made: str) -> str:
    """Returns SQL that evaluates ``parsed`` once, and then ``made``, which calls the result ``parts``. If ``made`` used
    ``parsed`` itself in a branch of CASE, Spark would evaluate it again for each use.
    """
    return f"get(transform(array({parsed}), parts -> {made}), 0)"


def _string(value: str, tag: str) -> str:
    parsed = _parsed(value, tag, "STRING")
    return f"IF(contains({value}, '\\\\'), {parsed}, {_content(value, tag, quoted=True)})"


def _cases(kind: ColumnType, value: str, to: str, fails: Fails, options: Options) -> list[tuple[str, str]]:
    """Returns pairs: a condition on the JSON text, and the SQL of the value if the condition holds."""
    name = kind.name
    if name in _INTEGERS:
        tag = "UnsignedInteger" if kind.unsigned else "SignedInteger"
        return [(_is(value, tag), f"CAST({_content(value, tag)} AS {to})")]
    if name in ("float", "double", "bit", "year"):
        tag = name.capitalize()
        return [(_is(value, tag), f"CAST({_content(value, tag)} AS {to})")]
    if name == "decimal":
        return [(_is(value, "Decimal"), f"CAST({_content(value, 'Decimal', quoted=True)} AS {to})")]
    if name in _TEXTS:
        if _is_text(kind):
            return [(_is(value, "String"), _string(value, "String"))]
        return [(_is(value, "Text"), f"unbase64({_parsed(value, 'Text', 'STRUCT<base64: STRING>')}.base64)")]
    if name in _BINARY or name in ("geometry", "vector"):
        tag = "Blob" if name in _BINARY else name.capitalize()
        return [(_is(value, tag), f"unbase64({_content(value, tag, quoted=True)})")]
    if name in ("enum", "set"):
        return _members(kind, value)
    if name == "json":
        return _documents(value, fails, options)
    if name == "time":
        return [(_is(value, "Time"), _interval(value))]
    return [
        (_is(value, {"datetime": "DateTime"}.get(name, name.capitalize())), _moment(name, value, to, fails, options))
    ]


def _documents(value: str, fails: Fails, options: Options) -> list[tuple[str, str]]:
    hint = '\'it has members of SQL types; give typed_json="null" or "record"\''
    document, record = _content(value, "Json"), value
    if options.json == "variant":
        too_large = fails("'this document is larger than a VARIANT of Spark may be'")
        document, record = (f"coalesce(try_parse_json({each}), {too_large})" for each in (document, record))
    of_typed = {"error": fails(hint), "null": "NULL", "record": record}[options.typed_json]
    return [(_is(value, "Json"), document), (_is(value, "JsonTyped"), of_typed)]


def _members(kind: ColumnType, value: str) -> list[tuple[str, str]]:
    """Returns the branches (condition, value) of the SQL CASE that converts an ENUM or SET: a record contains the texts
    of the members, or a number that stands for them.
    """
    known = None if kind.members is None else f"array({', '.join(map(literal, kind.members))})"
    if kind.name == "enum":
        number = f"CAST({_content(value, 'Enum')} AS INT)"
        cases = [(_is(value, "Enum", '"'), _string(value, "Enum")), (f"{value} = '{{\"Enum\":0}}'", "''")]
        return cases + ([(_is(value, "Enum"), f"get({known}, {number} - 1)")] if kind.members else [])
    listed = _parsed(value, "Set", "ARRAY<STRING>")
    cases = [(_is(value, "Set", "["), listed), (f"{value} = '{{\"Set\":0}}'", "CAST(array() AS ARRAY<STRING>)")]
    if not kind.members:
        return cases
    # The mask is an unsigned number of up to 64 bits.
    mask = f"CAST(conv({_content(value, 'Set')}, 10, -10) AS BIGINT)"
    chosen = f"filter({known}, (m, i) -> ({mask} & shiftleft(1L, i)) != 0)"
    return [*cases, (_is(value, "Set"), chosen)]


def _interval(value: str) -> str:
    parts = _parsed(value, "Time", f"STRUCT<negative: BOOLEAN, {_CLOCK}>")
    seconds = "CAST(parts.second + parts.subsecond / 1000000BD AS DECIMAL(18,6))"
    return _once(parts, f"make_dt_interval(0, parts.hour, parts.minute, {seconds}) * IF(parts.negative, -1, 1)")


def _moment(name: str, value: str, to: str, fails: Fails, options: Options) -> str:
    """Returns the SQL that converts a DATE, DATETIME or TIMESTAMP. A cast fails only for a date that no calendar
    has.
    """
    if name == "timestamp":
        parts = _parsed(value, "Timestamp", "STRUCT<unix_time: BIGINT, subsecond: INT>")
        moment = "timestamp_micros(parts.unix_time * 1000000 + parts.subsecond)"
        zero, is_zero = "'0000-00-00 00:00:00'", "parts.unix_time = 0 AND parts.subsecond = 0"
        # The text is computed without the session's time zone, which lacks an hour when summer time begins.
        day = "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, parts.unix_time)"
        in_utc = f"concat(CAST({day} AS STRING), '.', lpad(parts.subsecond, 6, '0'))"
        if options.zero_dates == "string":
            return _once(parts, f"IF({is_zero}, {zero}, {in_utc})")
        return _soon(name, value, _once(parts, f"IF({is_zero}, {_of_zero(fails, zero, options)}, {moment})"))
    tag = "Date" if name == "date" else "DateTime"
    parts = _parsed(value, tag, f"STRUCT<{_DAY}{'' if name == 'date' else ', ' + _CLOCK}>")
    names = ["year", "month", "day"] + (["hour", "minute", "second", "subsecond"] if name == "datetime" else [])
    form = "%04d-%02d-%02d" + (" %02d:%02d:%02d.%06d" if name == "datetime" else "")
    text = f"format_string('{form}', {', '.join(f'parts.{each}' for each in names)})"
    if options.zero_dates == "string":
        return _once(parts, text)
    return _soon(name, value, _once(parts, f"coalesce(try_cast({text} AS {to}), {_of_zero(fails, text, options)})"))


def _soon(name: str, value: str, other: str) -> str:
    """Returns the SQL that quickly converts the usual text form of a value; ``other`` is the SQL for all other forms.

    Parsing the JSON and formatting its numbers as text takes longer than everything else that is done with a row.
    """
    form, text, to = _FORMS[name]
    found = f"try_cast(regexp_replace({value}, {literal(form)}, {literal(text)}) AS {to})"
    return f"coalesce({f'timestamp_seconds({found})' if name == 'timestamp' else found}, {other})"


def _of_zero(fails: Fails, text: str, options: Options) -> str:
    if options.zero_dates == "null":
        return "NULL"
    return fails(f'concat({text}, \' is no date in Spark; give zero_dates="null" or "string"\')')
