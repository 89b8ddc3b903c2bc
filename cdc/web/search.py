"""Parses a search, and the numbers in it, from the query of an address, and writes searches into the addresses of
links. Pure.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlencode

from starlette.convertors import IntegerConvertor, register_url_convertor

from cdc.browse.entries import KINDS, Filter, parsed_kinds, parsed_time
from cdc.errors import UserError

__all__ = ["MessageSearch", "Search", "number", "record_address", "records_address"]

_SEQUENCES = re.compile(r"(?P<first>\d{1,18})?(?P<range>-)?(?P<last>\d{1,18})?", re.ASCII)
_ALL_AT_ONCE = 100  # the most partitions that are read together
_TEXTS = ("table", "key", "since", "upto", "gtid", "sequence")


@dataclass(frozen=True, slots=True)
class Search:
    """The fields of the form as the user entered them, and ``cursor``, the sequence at which the page of results
    begins.

    ``oldest_first`` is true if the oldest results come first. ``sequence`` is one sequence, or a range: ``100-200``,
    ``100-``.
    """

    table: str = ""
    key: str = ""
    since: str = ""
    upto: str = ""
    gtid: str = ""
    sequence: str = ""
    kinds: tuple[str, ...] = ()
    oldest_first: bool = False
    cursor: int | None = None

    @classmethod
    def parse(cls, query: Mapping[str, Sequence[str]]) -> Self:
        """Parses a query, which maps each name to its values. Ignores unknown names and kinds, and invalid cursors."""
        texts = {name: query[name][-1].strip() for name in _TEXTS if query.get(name)}
        kinds = tuple(kind for kind in KINDS if kind in query.get("kind", ()))
        return cls(
            **texts,
            kinds=kinds,
            oldest_first=query.get("order", [""])[-1] == "oldest",
            cursor=number(query.get("cursor", [""])[-1]),
        )

    def filter(self) -> Filter:
        """Builds the filter for the index. Raises UserError for an invalid field."""
        first, last = self._sequences()
        return Filter(
            tables=(self.table,) if self.table else (),
            key=self.key,
            since_us=parsed_time(self.since) if self.since else None,
            upto_us=parsed_time(self.upto, end=True) if self.upto else None,
            gtid=self.gtid,
            kinds=parsed_kinds(self.kinds),
            first=first,
            last=last,
        )

    def _sequences(self) -> tuple[int | None, int | None]:
        if not self.sequence:
            return None, None
        found = _SEQUENCES.fullmatch(self.sequence.replace(",", "").replace(" ", ""))
        if not found or (found["first"] is None and found["last"] is None):
            raise UserError(
                f"{self.sequence!r} is no sequence", code="CDC-WEB-SEQUENCE", where="the form",
                hint="write 4711, or a range: 100-200, 100-, -200",
            )  # fmt: skip
        first, last = (None if each is None else int(each) for each in (found["first"], found["last"]))
        return (first, last) if found["range"] else (first, first)

    def query(self, **changed: object) -> str:
        """Returns the query of this search, with some values ``changed`` and without empty values."""
        values: dict[str, object] = {name: getattr(self, name) for name in _TEXTS}
        values |= {"kind": list(self.kinds), "order": "oldest" if self.oldest_first else "", "cursor": self.cursor}
        values |= changed
        return urlencode({name: value for name, value in values.items() if value not in ("", None, [])}, doseq=True)

    @property
    def is_empty(self) -> bool:
        """Whether the search has no condition, so that all records pass."""
        return not (any(getattr(self, name) for name in _TEXTS) or self.kinds)


def records_address(number: int, **search: object) -> str:
    """Returns the address of the page that lists the results of ``search`` in the stream ``number``."""
    query = Search().query(**search)
    return f"/streams/{number}/records" + (f"?{query}" if query else "")


def record_address(number: int, sequence: int, *, key: str | None = None) -> str:
    """Returns the address of a record, or of the rows with ``key`` in it."""
    return f"/streams/{number}/records/{sequence}" + (f"?key={quote(key, safe='')}" if key is not None else "")


# Reads the numbers in addresses of pages; accepts at most 18 digits, which SQLite and Kafka can store.

_DIGITS = "[0-9]{1,18}"


class _Number(IntegerConvertor):
    """Matches ``{name:number}`` in a route. It replaces ``{name:int}``, which fails for numbers with more digits than
    Python converts.
    """

    regex = _DIGITS


register_url_convertor("number", _Number())


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """Determines which messages of a topic a page shows. ``partition`` is None for all partitions. If ``single`` is
    set, the page shows only the message at this offset. Else a page of one partition shows messages from ``offset`` on,
    or before ``until``; a search reads backwards from the offsets ``ends``. By default the newest messages are shown.
    """

    partition: int | None
    text: str = ""
    since: str = ""
    offset: int | None = None
    until: int | None = None
    single: int | None = None
    uncommitted: bool = False
    ends: Mapping[int, int] | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str], partitions: Collection[int]) -> Self:
        """Parses a query for a topic with these ``partitions``. Raises UserError for an invalid offset or time."""
        texts = {name: query.get(name, "").strip() for name in ("partition", "text", "since")}
        offset, until, single = (_offset(query.get(name, "")) for name in ("offset", "until", "single"))
        partition = number(texts["partition"])
        if partition is None and (
            (offset, until, single) != (None, None, None) or not 1 < len(partitions) <= _ALL_AT_ONCE
        ):
            partition = min(partitions, default=0)
        places = sorted(partitions) if partition is None else [partition]
        marks = [number(each) for each in query.get("ends", "").split(".")]
        ends = {place: mark for place, mark in zip(places, marks, strict=False) if mark is not None}
        if texts["since"]:
            parsed_time(texts["since"])
        return cls(
            partition, texts["text"], texts["since"], offset, until, single, query.get("uncommitted") == "1",
            ends if len(ends) == len(places) else None,
        )  # fmt: skip

    @property
    def since_ms(self) -> int | None:
        """The earliest time of the messages that the page shows, in milliseconds since 1970."""
        return parsed_time(self.since) // 1000 if self.since else None

    def query(self, **changes: object) -> str:
        """Writes partition, text and ``uncommitted`` as the query of an address, with these ``changes``."""
        partition = "all" if self.partition is None else self.partition
        kept = {"partition": partition, "text": self.text, "uncommitted": "1" if self.uncommitted else ""}
        return urlencode({name: value for name, value in (kept | changes).items() if value not in ("", None)})


def _offset(text: str) -> int | None:
    """Parses an offset, also as the page shows it (1,234)."""
    bare = text.strip().replace(",", "")
    found = number(bare)
    if bare and found is None:
        raise UserError(
            f"{text!r} is no offset", code="CDC-BROWSE-NO-OFFSET", hint="write a number as the page shows it: 1,234"
        )
    return found


def number(text: str | None) -> int | None:
    """Parses ``text``; returns None if it is not a number of at most 18 digits."""
    return int(text) if text and re.fullmatch(_DIGITS, text) else None
