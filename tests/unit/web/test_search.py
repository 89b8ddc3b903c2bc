"""A search: what is written in the form, the filter that it makes, and the addresses with it."""

from glob import escape
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.browse.entries import KINDS, Filter
from cdc.config.table_globs import named
from cdc.errors import UserError
from cdc.web.search import MessageSearch, Search, record_address, records_address

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(str.strip)
NUMBER = st.none() | st.integers(0, 10**18 - 1)


@given(table=TEXT, key=TEXT, gtid=TEXT, kinds=st.sets(st.sampled_from(KINDS)), cursor=NUMBER, oldest=st.booleans())
def test_an_address_has_the_whole_search(
    table: str, key: str, gtid: str, kinds: set[str], cursor: int | None, oldest: bool
) -> None:
    search = Search(
        table, key, gtid=gtid, kinds=tuple(kind for kind in KINDS if kind in kinds), oldest_first=oldest, cursor=cursor
    )
    assert Search.parse(parse_qs(search.query())) == search


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("4711", 4711, 4711),
        ("100-200", 100, 200),
        ("100-", 100, None),
        ("-200", None, 200),
        ("1,000 - 2,000", 1000, 2000),
        ("", None, None),
    ],
)
def test_sequences(text: str, first: int | None, last: int | None) -> None:
    found = Search(sequence=text).filter()
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize(
    "search",
    [
        Search(sequence="-"), Search(sequence="x"), Search(sequence="1-2-3"), Search(sequence="٣"),
        Search(since="soon"), Search(upto="2026-13-01"), Search(table="`a"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_read(search: Search) -> None:
    with pytest.raises(UserError) as error:
        search.filter()
    assert error.value.hint


def test_a_filter() -> None:
    found = Search("shop.*", "42", "2026-11-27", "2026-11-27", "u:1", "5-", ("Add",)).filter()
    expected = Filter(
        ("shop.*",), "42", 1_795_737_600_000_000, 1_795_823_999_999_999, "u:1", frozenset(["Add"]), 5, None
    )
    assert found == expected


@pytest.mark.parametrize("query", ["kind=Nothing&cursor=-1&order=x", "cursor=٣", "cursor=" + "9" * 30, "other=1"])
def test_what_is_no_search_is_ignored(query: str) -> None:
    assert Search.parse(parse_qs(query)) == Search() and Search.parse(parse_qs(query)).is_empty


@given(key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_key_can_be_in_an_address(key: str) -> None:
    address = record_address(1, 5, key=key)
    assert urlsplit(address).path == "/streams/1/records/5"
    assert parse_qs(urlsplit(address).query, keep_blank_values=True) == {"key": [key]}
    assert address.isascii()


def test_an_address_without_a_search() -> None:
    assert records_address(2) == "/streams/2/records"
    assert records_address(2, table="a.b", key="1, 2") == "/streams/2/records?table=a.b&key=1%2C+2"


@pytest.mark.parametrize("database", ["db", " db", "\u3000db", "-db", "d.b", "d`b", "[d]*", "db "])
@pytest.mark.parametrize("table", ["t", " t", "t\u3000", "t.*", "`t", "[t", "?"])
def test_the_history_of_a_row_is_of_its_table_whatever_its_name(database: str, table: str) -> None:
    glob = named(escape(database), escape(table))
    query = parse_qs(urlsplit(records_address(1, table=glob, key="1")).query)
    globs = Search.parse(query).filter().globs
    assert globs and globs.match(database, table)
    assert not globs.match(database, "other")


@pytest.mark.parametrize(
    ("query", "partitions", "partition", "ends"),
    [
        ({}, 1, 0, None),
        ({}, 3, None, None),
        ({"partition": "all"}, 1, 0, None),
        ({"partition": "all"}, 101, 0, None),  # too many to be read together
        ({"partition": "2"}, 3, 2, None),
        ({"partition": "all", "offset": "5"}, 3, 0, None),  # an offset is one partition's
        ({"ends": "4.5.6"}, 3, None, {0: 4, 1: 5, 2: 6}),
        ({"ends": "4.5"}, 3, None, None),
        ({"ends": "4.x.6"}, 3, None, None),
        ({"partition": "1", "ends": "7"}, 3, 1, {1: 7}),
    ],
)
def test_the_partitions_of_a_page_of_messages(
    query: dict[str, str], partitions: int, partition: int | None, ends: dict[int, int] | None
) -> None:
    search = MessageSearch.parse(query, range(partitions))
    assert (search.partition, search.ends) == (partition, ends)
    again = dict(parse_qsl(search.query()))
    assert MessageSearch.parse(again, range(partitions)).partition == partition


def test_an_offset_and_a_text_of_messages() -> None:
    search = MessageSearch.parse({"offset": " 1,234 ", "text": " a&b ", "since": "1970-01-01T00:00:02"}, [0])
    assert (search.offset, search.text, search.since_ms) == (1234, "a&b", 2000)
    assert search.query(single=7) == "partition=0&text=a%26b&single=7"
    for wrong in ({"offset": "1x"}, {"since": "yesterday"}):
        with pytest.raises(UserError, match="is no"):
            MessageSearch.parse(wrong, [0])
