"""Computes an artificial key for each row of a table without a key. The key is a hash of all values; both the server
and the consumer can compute it.

Two rows have the same key only if all their values are identical, including each byte, the sign of a zero, and the type
of each member of a JSON document. The key is half of the SHA-256 of the texts with which before-images are compared
(``before_images``), with three differences, because for some types those texts are not exact. Here floating-point
numbers are written as text, ENUM's error value differs from a member '', and JSON documents are hashed by the server
for both sides.

Such a key is slow to compute, and no index contains it. So a query begins with conditions on single columns: each of
them requires that the column has one of the images' values.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cdc.consumer.literals.before_images import FIELDS, TEXTS, tag_of
from cdc.consumer.literals.json_documents import member_types
from cdc.consumer.literals.values import identifier, literal
from cdc.model.values import NULL, Value

__all__ = [
    "HEX_DIGITS",
    "ImageKeys",
    "document_literals",
    "document_text",
    "float_text",
    "image_keys",
    "narrowing",
]

Image = Sequence[Value]
HEX_DIGITS = 32
_FLOATS, _DOCUMENTS, _NUMBERS = ("Float", "Double"), ("Json", "JsonTyped"), ("Enum", "Enum number")
# For these types, the comparison with a list of values is exact; it is fastest for _FAST.
_FAST = ("SignedInteger", "UnsignedInteger")
_LISTED = frozenset({*_FAST, "Decimal", "String", "Blob"})
_LONGEST = 64  # bytes; the length of the longest literal in a list of values
_MOST_DIGITS = 15  # a number with more digits before the point, or zeros after it, is written with an exponent


@dataclass(frozen=True, slots=True)
class ImageKeys:
    """A way to compute keys. For a row that equals the image, ``value(image)`` is the result of the SQL ``expression``,
    in hexadecimal.

    ``value`` raises one of ``before_images.INCOMPARABLE`` for an image that has no key.
    """

    expression: str
    value: Callable[[Image], str]


def image_keys(names: Sequence[str], images: Sequence[Image], documents: Mapping[str, str]) -> ImageKeys:
    """Returns the ImageKeys for rows with these columns; the types of the columns are found from the ``images``.

    ``documents`` maps the literal of each JSON document to the text that the server returns for it (``document_text``).
    Raises ValueError for an invalid value.
    """
    columns: list[str] = []
    fields: list[Callable[[Value], str]] = []
    for index, name in enumerate(names):
        text, field = _column(_tag([image[index] for image in images]), documents)
        columns.append(text.replace("?", identifier(name)))
        fields.append(field)

    def value(image: Image) -> str:
        texts = ["NULL" if value == NULL else field(value) for value, field in zip(image, fields, strict=True)]
        return hashlib.sha256(",".join(texts).encode()).hexdigest()[:HEX_DIGITS]

    return ImageKeys(f"UNHEX(LEFT(SHA2(CONCAT_WS(',',{','.join(columns)}),256),{HEX_DIGITS}))", value)


def _tag(values: Sequence[Value]) -> str:
    """Finds the type of a column from its values. The error value of an ENUM is used only if there is no other value:
    it is a number even if the column's other values are texts.
    """
    some = [value for value in values if value != NULL]
    return tag_of(next((value for value in some if value != _ERROR), some[0] if some else NULL))


def _column(tag: str, documents: Mapping[str, str]) -> tuple[str, Callable[[Value], str]]:
    """Returns the SQL that writes a column (?) as text, and a function that writes a value as the same text."""
    if tag in _FLOATS:
        # The multiplication keeps the sign of a zero, and turns a FLOAT(m,d) into a double. Only the double's JSON text
        # has all digits.
        return "IFNULL(CAST(CAST(?*1e0 AS JSON) AS CHAR),'NULL')", lambda value: float_text(value[tag])
    if tag in _DOCUMENTS:
        return f"IF(? IS NULL,'NULL',IFNULL({document_text('?')},'none'))", lambda value: documents[literal(value)]
    if tag in _NUMBERS:
        return _ENUM[tag], lambda value: "0" if value == _ERROR else FIELDS[tag](value)
    return TEXTS[tag][0], FIELDS[tag]


_ERROR: Value = {"Enum": 0}
_ENUM = {tag: f"IF(?+0=0,'0',{TEXTS[tag][0]})" for tag in _NUMBERS}


def float_text(number: float) -> str:
    """Writes a double as the server writes it in JSON: with the fewest digits, and with an exponent if it is large or
    small."""
    sign, found, exponent = Decimal(repr(float(number))).as_tuple()
    digits = "".join(map(str, found)).rstrip("0")
    if not digits:
        return "-0.0" if sign else "0.0"
    if not isinstance(exponent, int):
        raise ValueError(f"JSON has no such number: {number}")
    point = len(found) + exponent  # the number of digits before the point
    if point <= -_MOST_DIGITS or (point > _MOST_DIGITS and point >= len(digits)):
        text = f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1}"
    elif point <= 0:
        text = f"0.{'0' * -point}{digits}"
    elif point >= len(digits):
        text = f"{digits.ljust(point, '0')}.0"
    else:
        text = f"{digits[:point]}.{digits[point:]}"
    return f"-{text}" if sign else text


def document_text(document: str) -> str:
    """Returns SQL for the text with which a JSON document is compared; ``document`` is SQL, too. The text of NULL is
    NULL.
    """
    types = [f"IFNULL({each},'')" for each in member_types(document)]
    shown = f"CAST(CAST({document} AS CHAR) AS BINARY)"
    parts = ",'|',".join([*types, shown])
    return f"LEFT(SHA2(CONCAT({parts}),256),{HEX_DIGITS})"


def document_literals(images: Iterable[Image]) -> list[str]:
    """Returns the literals of all JSON documents in the images, without duplicates. Raises ValueError for an invalid
    value.
    """
    return list(
        dict.fromkeys(
            literal(value)
            for image in images
            for value in image
            if isinstance(value, dict) and not value.keys().isdisjoint(_DOCUMENTS)
        )
    )


def narrowing(names: Sequence[str], images: Sequence[Image], *, indexed: frozenset[str]) -> dict[str, str]:
    """Returns, for the ``indexed`` columns and for the most selective other column, a condition that all images fulfil.

    Raises one of ``before_images.INCOMPARABLE`` for an invalid value.
    """
    found: dict[str, list[Value]] = {}
    fast: dict[str, int] = {}
    other: dict[str, int] = {}
    for index, name in enumerate(names):
        values = [image[index] for image in images]
        tags = {next(iter(value)) for value in values if value != NULL}
        if len(tags) != 1 or not tags <= _LISTED:
            continue
        (tag,) = tags
        found[name] = list({None if value == NULL else value[tag]: value for value in values}.values())
        (fast if tag in _FAST else other)[name] = len(found[name])
    best = [max(some, key=some.__getitem__) for some in (fast, other) if some]
    if len(best) == 2:
        best = best[:1] if 2 * fast[best[0]] >= other[best[1]] else best[1:]
    chosen = {name: list(map(literal, found[name])) for name in found if name in indexed or name in best}
    return {name: _one_of(name, texts) for name, texts in chosen.items() if _are_short(texts)}


def _are_short(texts: Sequence[str]) -> bool:
    return max(len(text.encode()) for text in texts) <= _LONGEST


def _one_of(column: str, texts: Sequence[str]) -> str:
    """Returns the condition that a column has the value of one of these literals."""
    name = identifier(column)
    values = [text for text in texts if text != "NULL"]
    conditions = [f"{name} IN ({','.join(values)})"] if values else []
    if len(values) < len(texts):
        conditions.append(f"{name} IS NULL")
    return f"({' OR '.join(conditions)})" if len(conditions) > 1 else conditions[0]
