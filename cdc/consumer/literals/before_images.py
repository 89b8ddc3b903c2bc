"""Whether rows of the follower are what they were on the leader before they changed there. Pure.

A row with a key is found by its key alone, whatever its other columns hold. To see that somebody else changed those,
the rows that a step changes or deletes are compared first, by an UPDATE that sets a column to itself: it counts the
rows that it matches, writes nothing and logs nothing, and locks only what is to be locked anyway.

A row is compared as one text, which the server makes of its columns and we of the image, since a list of texts is what
the server searches fastest, five times as fast as a condition a row. Texts and bytes stand in it by the first half of
their SHA-256, since MySQL 9.7 has no MD5 of its own. Floating-point numbers, of which there is no text that both sides
would write alike, stand beside it. Of documents only that they are there is compared, and nothing of what the follower
computes itself.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdc.consumer.literals.scalars import SCALARS
from cdc.consumer.literals.timestamps import timestamp_text
from cdc.consumer.literals.values import identifier, literal
from cdc.model.record import Record
from cdc.model.values import NULL, Value

__all__ = ["UNLIKE", "Comparison", "as_before", "compared", "comparison"]

Image = Sequence[Value]
UNLIKE = (ValueError, KeyError, TypeError, AttributeError, OSError, OverflowError)  # the last two: times past any clock
_FLOATS = frozenset({"Float", "Double"})
_MOST_COMPILED = 30  # columns


@dataclass(frozen=True, slots=True)
class Comparison:
    """``value(image)`` is a literal of what the SQL ``expression`` gives for a row that is as the image.

    ``value`` raises one of ``UNLIKE`` for an image with a value of another type than the column has in the samples, or
    with one that is none of a record.
    """

    expression: str
    value: Callable[[Image], str]


def compared(record: Record, columns: frozenset[str]) -> list[int]:
    """The places of the columns that are compared; ``columns`` are those that can be written."""
    return [index for index, column in enumerate(record.columns) if column in columns]


def comparison(names: tuple[str, ...], places: Sequence[int], samples: Sequence[Image]) -> Comparison:
    """How rows are compared by their columns at ``places``, whose types the ``samples`` show.

    Raises ValueError for what is not a value of a record.
    """
    tags = (_tag(next((image[place] for image in samples if image[place] != NULL), NULL)) for place in places)
    return (_made if len(places) <= _MOST_COMPILED else _joined)(names, tuple(places), tuple(tags))


def as_before(record: Record, places: Sequence[int], image: Image) -> str:
    """The condition that a row is as in ``image`` at these places.

    Raises ValueError for what is not a value of a record.
    """
    how = comparison(record.columns, places, [image])
    try:
        return f"{how.expression}={how.value(image)}"
    except UNLIKE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _joined(names: tuple[str, ...], places: tuple[int, ...], tags: tuple[str, ...]) -> Comparison:
    """As ``_made``, without a function for the table: of many columns each pattern of NULLs would need another one."""
    texts = [(place, _FIELDS[_THERE if tag in _FLOATS else tag]) for place, tag in zip(places, tags, strict=True)]
    floats = [place for place, tag in zip(places, tags, strict=True) if tag in _FLOATS]

    def value(image: Image) -> str:
        text = ",".join(["NULL" if image[place] == NULL else field(image[place]) for place, field in texts])
        numbers = "".join([f",{_number(image[place])}" for place in floats])
        return f"('{text}'{numbers})" if numbers else f"'{text}'"

    return Comparison(_expression(names, places, tags), value)


# The tags are the same for nearly all rows, so a function is made of them, one f-string in which each value is taken by
# its tag. Kept, because compiling one costs a hundred uses of it.
@lru_cache(maxsize=1000)
def _made(names: tuple[str, ...], places: tuple[int, ...], tags: tuple[str, ...]) -> Comparison:
    floats = [place for place, tag in zip(places, tags, strict=True) if tag in _FLOATS]
    fields = []
    for place, tag in zip(places, tags, strict=True):
        _, text = _TEXTS[_THERE if tag in _FLOATS else tag]
        fields.append(f"{{null if v[{place}]==Null else {text.replace('?', f'v[{place}]')}}}")
    value = "{quote}" + ",".join(fields) + "{quote}"
    if floats:
        value = f"({','.join([value, *(f'{{number(v[{place}])}}' for place in floats)])})"
    return Comparison(_expression(names, places, tags), eval(f"lambda v: f{value!r}", dict(_NAMES)))


def _expression(names: tuple[str, ...], places: tuple[int, ...], tags: tuple[str, ...]) -> str:
    expressions, numbers = [], []
    for place, tag in zip(places, tags, strict=True):
        expression, _ = _TEXTS[_THERE if tag in _FLOATS else tag]
        expressions.append(expression.replace("?", identifier(names[place])))
        if tag in _FLOATS:
            numbers.append(f"IFNULL({identifier(names[place])}+0e0,0e0)")
    text = f"CAST(CONCAT_WS(',',{','.join(expressions)}) AS BINARY)"
    return f"({','.join([text, *numbers])})" if numbers else text


def _tag(value: Value) -> str:
    if value == NULL:
        return _NEVER
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"not a value of a record: {str(value)[:80]}")
    ((tag, content),) = value.items()
    if tag not in _TEXTS and tag not in _FLOATS:
        raise ValueError(f"not a value of a record: {str(value)[:80]}")
    return f"{tag} number" if tag in ("Enum", "Set") and isinstance(content, int) else tag


def _number(value: Value) -> str:
    return "0e0" if value == NULL else literal(value)


def _of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _of_bytes(text: str) -> str:
    return hashlib.sha256(base64.b64decode(text)).hexdigest()[:32]


def _timestamp(content: dict[str, int]) -> str:
    return f"{timestamp_text(content['unix_time'])}.{content['subsecond']:06d}"


def _time(content: dict[str, int]) -> str:
    return ("-" if content["negative"] else "") + _TIME % content


def _never(value: Value) -> str:
    raise ValueError(f"all samples are NULL, and this is {value}")


_DATE = "%(year)04d-%(month)02d-%(day)02d"
_TIME = "%(hour)02d:%(minute)02d:%(second)02d.%(subsecond)06d"
_NEVER, _THERE = "never", "there"
_INTEGER_TEXT = "IFNULL(?+0,'NULL')"  # a sum has no zeros in front, as a column with ZEROFILL has
_TEXT_TEXT = "IFNULL(LEFT(SHA2(CONVERT(? USING utf8mb4),256),32),'NULL')"
_BYTES_TEXT = "IFNULL(LEFT(SHA2(CAST(? AS BINARY),256),32),'NULL')"
_MOMENT_TEXT = "IFNULL(CAST(? AS DATETIME(6)),'NULL')"
_THERE_TEXT = "IF(? IS NULL,'NULL','there')"
# For each tag the text of a column (?) in SQL, and that of its value (?) in Python; NULL is NULL in both.
_TEXTS = {
    _NEVER: (_THERE_TEXT, "never(?)"),
    _THERE: (_THERE_TEXT, "there"),
    "SignedInteger": (_INTEGER_TEXT, "int(?[SignedInteger])"),
    "UnsignedInteger": (_INTEGER_TEXT, "int(?[UnsignedInteger])"),
    "Bit": (_INTEGER_TEXT, "int(?[Bit])"),
    "Year": (_INTEGER_TEXT, "int(?[Year])"),
    "Decimal": (_INTEGER_TEXT, "decimal(?[Decimal])"),
    "String": (_TEXT_TEXT, "of_text(?[String])"),
    "Enum": (_TEXT_TEXT, "of_text(?[Enum])"),
    "Enum number": (_INTEGER_TEXT, "+?[Enum]"),
    "Set": (_TEXT_TEXT, "of_text(comma.join(?[Set]))"),
    "Set number": ("IFNULL(CAST(? AS UNSIGNED),'NULL')", "+?[Set]"),  # a sum would be a DOUBLE
    "Text": (_BYTES_TEXT, "of_bytes(?[Text][base64])"),
    "Blob": (_BYTES_TEXT, "of_bytes(?[Blob])"),
    "Geometry": (_BYTES_TEXT, "of_bytes(?[Geometry])"),
    "Vector": (_BYTES_TEXT, "of_bytes(?[Vector])"),
    "Date": ("IFNULL(?,'NULL')", "date%?[Date]"),
    "DateTime": (_MOMENT_TEXT, "datetime%?[DateTime]"),
    "Timestamp": (_MOMENT_TEXT, "timestamp(?[Timestamp])"),
    "Time": ("IFNULL(CAST(? AS TIME(6)),'NULL')", "time(?[Time])"),
    "Json": (_THERE_TEXT, "there"),
    "JsonTyped": (_THERE_TEXT, "there"),
}
_NAMES: dict[str, Any] = {
    "Null": NULL, "null": "NULL", "there": "there", "comma": ",", "quote": "'", "base64": "base64", "int": int,
    "date": _DATE, "datetime": f"{_DATE} {_TIME}", "time": _time, "timestamp": _timestamp,
    "decimal": SCALARS["Decimal"], "of_text": _of_text, "of_bytes": _of_bytes, "number": _number, "never": _never,
    **{tag: tag for tag in _TEXTS},
}  # fmt: skip
_FIELDS: dict[str, Callable[[Value], str]] = {
    tag: eval(f"lambda v: f{'{' + text.replace('?', 'v') + '}'!r}", dict(_NAMES)) for tag, (_, text) in _TEXTS.items()
}
