"""Parses the condition of a row filter, and evaluates it for rows as records contain them. Pure.

A condition consists of terms that are joined by AND: ``region = 'EU' AND amount >= 10``. A term compares a column with
one literal or several. The result does not depend on a server: numbers, dates and times are compared by value, text by
its code points, and NULL makes a comparison false. Columns of other types are refused, because their values have no
exact literal, or because their order depends on the server.
"""

import operator
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, Self

from cdc.model.charset import text_decoder
from cdc.sql.column_types import ColumnType, read_type
from cdc.sql.tokens import SqlReader, Token, spans

__all__ = ["Matches", "RowCondition", "Term"]

Literal = Decimal | str
Matches = Callable[[Sequence[Any]], bool]  # whether a condition is true for the values of a row
_Read = Callable[[Any], Any]  # converts a value of a record, which is not NULL, to an object that can be compared

_EQUAL, _UNEQUAL, _IN, _NULL, _NOT_NULL = "=", "<>", "IN", "IS NULL", "IS NOT NULL"
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    _EQUAL: operator.eq, _UNEQUAL: operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
_MARKS = ("<=", ">=", "<>", "!=", "<", ">", "=")  # a longer operator precedes those with which it begins
_WORD = re.compile(r"[A-Za-z_][0-9A-Za-z_]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "XOR"})


class Term(NamedTuple):
    """A comparison of ``column`` with ``literals``. IS NULL and IS NOT NULL have no literal, IN has any number, each
    other operator has one. The column's name is in lower case.
    """

    column: str
    operator: str
    literals: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        name = self.column
        if _WORD.fullmatch(name) is None or name.upper() in _KEYWORDS:
            name = f"`{name.replace('`', '``')}`"
        shown = [f"'{each.replace(chr(39), chr(39) * 2)}'" if isinstance(each, str) else f"{each:f}"
                 for each in self.literals]  # fmt: skip
        literals = f" ({', '.join(shown)})" if self.operator == _IN else "".join(f" {each}" for each in shown)
        return f"{name} {self.operator}{literals}"


@dataclass(frozen=True, slots=True)
class RowCondition:
    """The terms of a condition, sorted and each once, so that conditions are equal if they differ only in spelling."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the condition ``text``. Raises ValueError with the reason if it is not a condition."""
        reader = SqlReader(_tokens(text), "")
        found = [_term(reader)]
        while reader.take("AND"):
            found.append(_term(reader))
        if reader.at < len(reader.items):
            raise ValueError(f"only AND may follow a term, not {reader.items[reader.at].text!r}")
        return cls.joined([cls(tuple(found))])

    @classmethod
    def joined(cls, conditions: Iterable[Self]) -> Self:
        """Joins conditions by AND."""
        return cls(tuple(sorted({term for each in conditions for term in each.terms}, key=str)))

    def __str__(self) -> str:
        return " AND ".join(map(str, self.terms))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the condition, in lower case."""
        return frozenset(term.column for term in self.terms)

    def compiled(self, columns: Sequence[tuple[str, str]]) -> Matches:
        """Returns a function that decides whether the condition is true for the values of a row. ``columns`` are the
        names of the row's columns, each with its type as in records.

        Raises ValueError with the reason if a column is missing, or if a term can't be evaluated for its type.
        """
        places = {name.lower(): place for place, (name, _) in enumerate(columns)}
        tests = []
        for term in self.terms:
            if term.column not in places:
                raise ValueError(f"there is no column {term.column}")
            place = places[term.column]
            tests.append((place, _test(term, columns[place][1])))

        def matches(values: Sequence[Any]) -> bool:
            return all(test(values[place]) for place, test in tests)

        return matches


def _tokens(text: str) -> list[Token]:
    found, end = [], 0
    for span in spans(text, ansi_quotes=False, backslash_escapes=False):
        if text[end : span.start].strip():
            raise ValueError("it contains a comment")
        found.append(span.token)
        end = span.end
    if text[end:].strip():
        raise ValueError("it contains a comment")
    return found


def _term(reader: SqlReader) -> Term:
    if reader.peek() in _KEYWORDS or reader.at >= len(reader.items):
        raise ValueError("a column is missing" if reader.at >= len(reader.items) else f"{reader.peek()} has no meaning")
    column = reader.identifier().lower()
    if _DIGITS.match(column):
        raise ValueError(f"a column comes first, not {column}")
    if reader.take("IS", "NULL"):
        return Term(column, _NULL)
    if reader.take("IS", "NOT", "NULL"):
        return Term(column, _NOT_NULL)
    if reader.take("IN"):
        reader.require_mark("(")
        listed = [_literal(reader)]
        while reader.mark(","):
            listed.append(_literal(reader))
        reader.require_mark(")")
        return Term(column, _IN, tuple(sorted(set(listed), key=lambda each: (isinstance(each, str), each))))
    for marks in _MARKS:
        if reader.items[reader.at : reader.at + len(marks)] == [Token("mark", mark) for mark in marks]:
            reader.at += len(marks)
            return Term(column, _UNEQUAL if marks == "!=" else marks, (_literal(reader),))
    raise ValueError(f"after the column {column} comes one of =, <>, <, <=, >, >=, IN (…), IS NULL, IS NOT NULL")


def _literal(reader: SqlReader) -> Literal:
    items, at = reader.items, reader.at
    if at < len(items) and items[at].kind == "string":
        reader.at += 1
        return items[at].text
    sign = "-" if reader.mark("-") else ""
    whole = reader.identifier() if reader.at < len(items) and items[reader.at].kind == "word" else ""
    fraction = reader.identifier() if whole and reader.mark(".") else "0"
    if not _DIGITS.fullmatch(whole) or not _DIGITS.fullmatch(fraction):
        raise ValueError("a literal is a number, such as -10.5, or a text in single quotes; NULL needs IS NULL")
    # Trailing zeros do not change the value, so that two spellings of a number make one condition.
    value = Decimal(f"{sign}{whole}.{fraction}")
    return Decimal(int(value)) if value == value.to_integral_value() else Decimal(f"{value:f}".rstrip("0"))


def _test(term: Term, type_text: str) -> Callable[[Any], bool]:
    """Returns the test of a single value. Raises ValueError if values of this type can't be compared with the term's
    literals.
    """
    kind = read_type(type_text)
    if term.operator in (_NULL, _NOT_NULL):
        return _is_null if term.operator == _NULL else _is_not_null
    literal_of, read = _comparable(term, kind)
    literals = [literal_of(each) for each in term.literals]
    if term.operator == _IN:
        wanted = frozenset(literals)
        return lambda value: value != "Null" and read(_content(value)) in wanted
    compare, (literal,) = _COMPARED[term.operator], literals
    return lambda value: value != "Null" and compare(read(_content(value)), literal)


def _is_null(value: Any) -> bool:
    return bool(value == "Null")


def _is_not_null(value: Any) -> bool:
    return bool(value != "Null")


def _content(value: Any) -> Any:
    (content,) = value.values()
    return content


def _comparable(term: Term, kind: ColumnType) -> tuple[Callable[[Literal], Any], _Read]:
    """Returns the functions that convert the term's literals, and the values of a column of this type, to objects that
    can be compared.
    """
    if kind.name in _NUMBERS:
        return _number, Decimal if kind.name == "decimal" else int
    if kind.name in _TEXTS:
        if text_decoder(kind.charset or "") is None and kind.charset not in ("utf8mb4", "utf8mb3"):
            raise ValueError(f"column {term.column} has the character set {kind.charset}, which has no exact text")
        return _text, _text_value
    if kind.name == "enum":
        return _member_of(term, kind), _member_value
    if kind.name in _TIMES:
        return _TIMES[kind.name]
    raise ValueError(f"column {term.column} is {kind.name.upper()}, whose values have no exact comparison")


_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"})
# A value of MEDIUMTEXT or LONGTEXT may be too large for memory.
_TEXTS = frozenset({"char", "varchar", "tinytext", "text"})


def _number(literal: Literal) -> Decimal:
    if isinstance(literal, str):
        raise ValueError(f"{literal!r} is compared with a number: write it without quotes")
    return literal


def _text(literal: Literal) -> str:
    if not isinstance(literal, str):
        raise ValueError(f"{literal} is compared with a text: write it in single quotes")
    return literal


def _text_value(content: Any) -> str:
    # A value of an ASCII column with bytes above 127 is not text: it contains the character set and the bytes.
    return content if isinstance(content, str) else b64decode(content["base64"]).decode("latin-1")


def _member_of(term: Term, kind: ColumnType) -> Callable[[Literal], str]:
    if kind.members is None:
        raise ValueError(f"column {term.column} is an ENUM whose members have no exact text")
    if term.operator not in (_EQUAL, _UNEQUAL, _IN):
        raise ValueError(f"column {term.column} is an ENUM, whose members have no order")
    members = kind.members

    def literal_of(literal: Literal) -> str:
        text = _text(literal)
        if text and text not in members:
            raise ValueError(f"{text!r} is no member of the ENUM {term.column}")
        return text

    return literal_of


def _member_value(content: Any) -> str:
    return content if isinstance(content, str) else ""  # the number 0: MySQL's error value, an empty text


_SHOWN = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST = (9999, 12, 31, 23, 59, 59, 999_999)


def _moment(literal: Literal) -> tuple[int, ...]:
    """Parses a literal to the seven parts of a DATETIME."""
    found = _SHOWN.fullmatch(literal) if isinstance(literal, str) else None
    if found is None:
        raise ValueError(f"{literal} is no date or time: write it as '2024-12-31' or '2024-12-31 23:59:59'")
    parts = (*(int(each or 0) for each in found.groups()[:6]), int((found[7] or "").ljust(6, "0")))
    if any(part > most for part, most in zip(parts, _MOST, strict=True)):
        raise ValueError(f"{literal} is no date or time")
    return parts


def _day(literal: Literal) -> tuple[int, ...]:
    parts = _moment(literal)
    if any(parts[3:]):
        raise ValueError(f"{literal} has a time, but is compared with a DATE")
    return parts[:3]


def _day_value(content: Any) -> tuple[int, ...]:
    return content["year"], content["month"], content["day"]


def _moment_value(content: Any) -> tuple[int, ...]:
    return (*_day_value(content), content["hour"], content["minute"], content["second"], content["subsecond"])


def _instant(literal: Literal) -> int:
    """Parses a literal in UTC to the microseconds since 1970; the zero TIMESTAMP is 0."""
    year, month, day, hour, minute, second, micros = _moment(literal)
    if not any((year, month, day, hour, minute, second, micros)):
        return 0
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{literal} is no date or time") from None
    return (moment - _EPOCH) // _MICROSECOND


def _instant_value(content: Any) -> int:
    return int(content["unix_time"]) * 1_000_000 + int(content["subsecond"])


_TIMES: dict[str, tuple[Callable[[Literal], Any], _Read]] = {
    "date": (_day, _day_value), "datetime": (_moment, _moment_value), "timestamp": (_instant, _instant_value),
}  # fmt: skip
