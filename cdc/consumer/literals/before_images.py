"""Writes SQL that checks, before changes are applied, whether the follower's rows equal the changes' before-images.

A row with a key is found by its key alone, whatever values its other columns have. To detect that another client has
changed other columns, the rows that a step will update or delete are compared first. This is done with an UPDATE that
sets a column to itself. Such an UPDATE returns the number of matched rows, writes and logs nothing, and locks only rows
that the step will lock anyway.

A whole row is compared as one text. The server builds the text from the columns, and the consumer builds it from the
image. The reason is that the server can search a list of texts five times as fast as it can evaluate a condition for
each row. In the text, strings and bytes are replaced by the first half of their SHA-256 (MySQL 9.7 has no built-in
MD5). Floating-point numbers are compared separately, since server and consumer write them differently. For JSON
documents, only NULL and not NULL are distinguished. Generated columns are not compared.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdc.consumer.literals.scalars import SCALARS, timestamp_text
from cdc.consumer.literals.values import identifier, literal
from cdc.large_rows import StoredBlob
from cdc.model.record import Record
from cdc.model.values import NULL, Value

__all__ = ["FIELDS", "INCOMPARABLE", "TEXTS", "Comparison", "as_before", "compared", "comparison", "tag_of"]

Image = Sequence[Value]
# OSError and OverflowError mean that a time is out of range.
INCOMPARABLE = (ValueError, KeyError, TypeError, AttributeError, OSError, OverflowError)
_FLOATS = frozenset({"Float", "Double"})
_SLICE = 1 << 20  # characters of base64 to decode at a time; a multiple of four
_MOST_COMPILED = 30  # a function is compiled only for at most this number of columns
# A function is compiled only after this number of rows with the same types. Compiling it costs as much time as it saves
# for that number of rows, and most tables have fewer.
_FEWEST_COMPILED = 300


@dataclass(frozen=True, slots=True)
class Comparison:
    """A way to compare rows: the SQL ``expression`` equals the literal ``value(image)`` exactly if the row equals the
    image.

    ``comparison`` takes the type of each column from sample images. ``value`` raises one of ``INCOMPARABLE`` if the
    image contains an invalid value, or a value of another type than the sample images have in the same column.
    """

    expression: str
    value: Callable[[Image], str]


def compared(record: Record, columns: frozenset[str]) -> list[int]:
    """Returns the indexes of the columns to compare; ``columns`` are the names of the writable columns."""
    return [index for index, column in enumerate(record.columns) if column in columns]


def comparison(names: tuple[str, ...], indexes: Sequence[int], samples: Sequence[Image]) -> Comparison:
    """Builds the comparison of rows in the columns at ``indexes``; the types of these columns are taken from the images
    ``samples``.

    Raises ValueError for an invalid value.
    """
    tags = tuple([tag_of(next((image[index] for image in samples if image[index] != NULL), NULL)) for index in indexes])
    of = tuple(indexes)
    return Comparison(_expression(names, of, tags), _values(of, tags).function(len(samples)))


def as_before(record: Record, indexes: Sequence[int], image: Image) -> str:
    """Returns the condition that a row equals ``image`` in the columns at ``indexes``.

    Raises ValueError for an invalid value.
    """
    how = comparison(record.columns, indexes, [image])
    try:
        return f"{how.expression}={how.value(image)}"
    except INCOMPARABLE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


class _Values:
    """Writes the values of images as SQL. One object serves all tables whose compared columns have the same types. If
    there are many images, it compiles a function.
    """

    __slots__ = ("_function", "_indexes", "_left", "_tags")

    def __init__(self, indexes: tuple[int, ...], tags: tuple[str, ...]) -> None:
        self._indexes = indexes
        self._tags = tags
        self._function = _joined(indexes, tags)
        self._left = _FEWEST_COMPILED

    def function(self, images: int) -> Callable[[Image], str]:
        """Returns the function that writes an image as SQL (``Comparison.value``); ``images`` is the number of images
        for which it will be called.
        """
        # No function is compiled for many columns, because each pattern of NULLs would need another function.
        if self._left > 0 and len(self._indexes) <= _MOST_COMPILED:
            self._left -= images
            if self._left <= 0:
                self._function = _compiled(self._indexes, self._tags)
        return self._function


_values = lru_cache(maxsize=2000)(_Values)  # an entry for ten columns needs 2 kB, or 8 kB once its function is compiled


def _joined(indexes: tuple[int, ...], tags: tuple[str, ...]) -> Callable[[Image], str]:
    texts = [(index, FIELDS[_NOT_NULL if tag in _FLOATS else tag]) for index, tag in zip(indexes, tags, strict=True)]
    floats = [index for index, tag in zip(indexes, tags, strict=True) if tag in _FLOATS]

    def value(image: Image) -> str:
        text = ",".join(["NULL" if image[index] == NULL else field(image[index]) for index, field in texts])
        numbers = "".join([f",{_number(image[index])}" for index in floats])
        return f"('{text}'{numbers})" if numbers else f"'{text}'"

    return value


def _compiled(indexes: tuple[int, ...], tags: tuple[str, ...]) -> Callable[[Image], str]:
    """Returns the same function as ``_joined``, but compiled as one f-string that reads each value by its tag."""
    floats = [index for index, tag in zip(indexes, tags, strict=True) if tag in _FLOATS]
    fields = []
    for index, tag in zip(indexes, tags, strict=True):
        _, text = TEXTS[_NOT_NULL if tag in _FLOATS else tag]
        fields.append(f"{{null if v[{index}]==Null else {text.replace('?', f'v[{index}]')}}}")
    value = "{quote}" + ",".join(fields) + "{quote}"
    if floats:
        value = f"({','.join([value, *(f'{{number(v[{index}])}}' for index in floats)])})"
    compiled: Callable[[Image], str] = eval(f"lambda v: f{value!r}", dict(_NAMES))
    return compiled


@lru_cache(maxsize=2000)  # an entry for ten columns needs 1 kB
def _expression(names: tuple[str, ...], indexes: tuple[int, ...], tags: tuple[str, ...]) -> str:
    expressions, numbers = [], []
    for index, tag in zip(indexes, tags, strict=True):
        expression, _ = TEXTS[_NOT_NULL if tag in _FLOATS else tag]
        expressions.append(expression.replace("?", identifier(names[index])))
        if tag in _FLOATS:
            numbers.append(f"IFNULL({identifier(names[index])}+0e0,0e0)")
    text = f"CAST(CONCAT_WS(',',{','.join(expressions)}) AS BINARY)"
    return f"({','.join([text, *numbers])})" if numbers else text


def tag_of(value: Value) -> str:
    """Returns the name under which ``TEXTS`` and ``FIELDS`` contain the value's type, such as String or "Enum number".
    Float and Double are returned, too, although the tables lack them. Raises ValueError for anything but a value of a
    record.
    """
    if value == NULL:
        return _ALL_NULL
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"not a value of a record: {str(value)[:80]}")
    ((tag, content),) = value.items()
    if tag not in TEXTS and tag not in _FLOATS:
        raise ValueError(f"not a value of a record: {str(value)[:80]}")
    return f"{tag} number" if tag in ("Enum", "Set") and isinstance(content, int) else tag


def _number(value: Value) -> str:
    return "0e0" if value == NULL else literal(value)


def _of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _of_bytes(text: str | StoredBlob) -> str:
    if isinstance(text, StoredBlob):
        return text.digest[:32]
    digest = hashlib.sha256()
    for begin in range(0, len(text), _SLICE):
        digest.update(base64.b64decode(text[begin : begin + _SLICE]))
    return digest.hexdigest()[:32]


def _timestamp(content: dict[str, int]) -> str:
    return f"{timestamp_text(content['unix_time'])}.{content['subsecond']:06d}"


def _time(content: dict[str, int]) -> str:
    return ("-" if content["negative"] else "") + _TIME % content


def _all_null(value: Value) -> str:
    raise ValueError(f"all samples are NULL, but this is {value}")


_DATE = "%(year)04d-%(month)02d-%(day)02d"
_TIME = "%(hour)02d:%(minute)02d:%(second)02d.%(subsecond)06d"
_ALL_NULL, _NOT_NULL = "all_null", "there"
_INTEGER_TEXT = "IFNULL(?+0,'NULL')"  # ?+0 removes the leading zeros of a column with ZEROFILL
_TEXT_TEXT = "IFNULL(LEFT(SHA2(CONVERT(? USING utf8mb4),256),32),'NULL')"
_BYTES_TEXT = "IFNULL(LEFT(SHA2(CAST(? AS BINARY),256),32),'NULL')"
_MOMENT_TEXT = "IFNULL(CAST(? AS DATETIME(6)),'NULL')"
_NOT_NULL_TEXT = "IF(? IS NULL,'NULL','there')"
# Maps each type of values to two expressions: the SQL that writes a column (?) as text, and the Python expression that
# writes its value (?) as the same text. Both write NULL as the text NULL.
TEXTS = {
    _ALL_NULL: (_NOT_NULL_TEXT, "all_null(?)"),
    _NOT_NULL: (_NOT_NULL_TEXT, "there"),
    "SignedInteger": (_INTEGER_TEXT, "int(?[SignedInteger])"),
    "UnsignedInteger": (_INTEGER_TEXT, "int(?[UnsignedInteger])"),
    "Bit": (_INTEGER_TEXT, "int(?[Bit])"),
    "Year": (_INTEGER_TEXT, "int(?[Year])"),
    "Decimal": (_INTEGER_TEXT, "decimal(?[Decimal])"),
    "String": (_TEXT_TEXT, "of_text(?[String])"),
    "Enum": (_TEXT_TEXT, "of_text(?[Enum])"),
    "Enum number": (_INTEGER_TEXT, "+?[Enum]"),
    "Set": (_TEXT_TEXT, "of_text(comma.join(?[Set]))"),
    "Set number": ("IFNULL(CAST(? AS UNSIGNED),'NULL')", "+?[Set]"),  # ?+0 would be a DOUBLE
    "Text": (_BYTES_TEXT, "of_bytes(?[Text][base64])"),
    "Blob": (_BYTES_TEXT, "of_bytes(?[Blob])"),
    "Geometry": (_BYTES_TEXT, "of_bytes(?[Geometry])"),
    "Vector": (_BYTES_TEXT, "of_bytes(?[Vector])"),
    "Date": ("IFNULL(?,'NULL')", "date%?[Date]"),
    "DateTime": (_MOMENT_TEXT, "datetime%?[DateTime]"),
    "Timestamp": (_MOMENT_TEXT, "timestamp(?[Timestamp])"),
    "Time": ("IFNULL(CAST(? AS TIME(6)),'NULL')", "time(?[Time])"),
    "Json": (_NOT_NULL_TEXT, "there"),
    "JsonTyped": (_NOT_NULL_TEXT, "there"),
}
_NAMES: dict[str, Any] = {
    "Null": NULL, "null": "NULL", "there": "there", "comma": ",", "quote": "'", "base64": "base64", "int": int,
    "date": _DATE, "datetime": f"{_DATE} {_TIME}", "time": _time, "timestamp": _timestamp,
    "decimal": SCALARS["Decimal"], "of_text": _of_text, "of_bytes": _of_bytes, "number": _number, "all_null": _all_null,
    **{tag: tag for tag in TEXTS},
}  # fmt: skip
# Maps each tag to the function that writes a value as text.
FIELDS: dict[str, Callable[[Value], str]] = {
    tag: eval(f"lambda v: f{'{' + text.replace('?', 'v') + '}'!r}", dict(_NAMES)) for tag, (_, text) in TEXTS.items()
}
