"""Any history, added to an index in any order and any parts: what it finds is what a list of the records holds."""

import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.browse.entries import KINDS, Entry, Filter, Summary, key_of, keys_of, kind_of, objects_of
from cdc.browse.index import Added, Index, Progress, Writer, read_progress
from cdc.browse.query import Page, Queries
from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.model.position import Position
from cdc.model.record import KeyRange, Record, Row

TABLES = ("a", "b", "b_c")
UNLIMITED = 1_000_000_000


def value(number: int) -> dict[str, int]:
    return {"SignedInteger": number}


def image(key: int) -> list[dict[str, int]]:
    return [value(7), value(key)]


keys = st.integers(0, 4)
rows = {
    "Add": keys.map(lambda key: Row(None, image(key))),
    "Delete": keys.map(lambda key: Row(image(key), None)),
    "Update": st.tuples(keys, keys).map(lambda both: Row(image(both[0]), image(both[1]))),
    "Copy": keys.map(lambda key: Row(None, image(key))),
}


@st.composite
def bodies(draw: st.DrawFn) -> Record:
    """A record whose sequence and transaction are still to be set."""
    kind = draw(st.sampled_from(KINDS))
    table = draw(st.sampled_from(TABLES))
    record = Record(Uri("r", "d", table), 0, Position("b.1", 4), "", 0, False, 0, "Copy" if kind == "Repair" else kind)
    if kind in ("Query", "Skipped"):
        names = draw(st.lists(st.sampled_from(TABLES), max_size=2))
        record.uri = Uri("r", "d")
        record.affects = tuple({"action": "AlterTable", "uri": f"flv://r/d/{name}"} for name in names)
        return record
    record.columns, record.key = ("v", "id"), draw(st.sampled_from([("id",), ("id",), None]))
    record.rows = draw(st.lists(rows["Copy" if kind == "Repair" else kind], min_size=1, max_size=3))
    if kind == "Repair":
        record.range = KeyRange(None, None, keys=tuple([value(key)] for key in draw(st.lists(keys, min_size=1))))
    return record


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """The records of some transactions, whose times go backwards now and then."""
    found: list[Record] = []
    for number, records in enumerate(draw(st.lists(st.lists(bodies(), min_size=1, max_size=3), max_size=8))):
        ts_us = 1_000 + draw(st.integers(0, 4))
        for index, record in enumerate(records):
            record.sequence, record.transaction, record.index = len(found), f"uuid:{number}", index
            record.last, record.ts_us = index == len(records) - 1, ts_us
            found.append(record)
    return found


conditions = {
    "tables": st.sets(st.sampled_from(["d.a", "b", "d.b*", "*.*", "x.*", "`d`.`b_c`"]), min_size=1).map(tuple),
    "key": keys.map(str) | keys.map(lambda key: f"id={key}"),
    "since_us": st.integers(999, 1_005),
    "upto_us": st.integers(999, 1_005),
    "gtid": st.integers(0, 4).map(lambda number: f"UUID:{number}"),
    "kinds": st.frozensets(st.sampled_from(KINDS), min_size=1, max_size=3),
    "first": st.integers(-1, 9),
    "last": st.integers(-1, 9),
}  # fmt: skip


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """One condition or two: with more of them nothing passes."""
    names = draw(st.lists(st.sampled_from(list(conditions)), max_size=2, unique=True))
    return Filter(**{name: draw(conditions[name]) for name in names})


def added(record: Record) -> Added:
    return Added(("t", record.sequence % 2), 100 + record.sequence, 10, Summary.of(record))


def filled(index: Index, parts: Sequence[Sequence[Record]], *, most_bytes: int = UNLIMITED) -> Queries:
    progress = {("t", number): Progress("id", 1_000) for number in range(2)}
    with closing(index.file.connect()) as connection:
        writer = Writer(connection, most_bytes=most_bytes)
        for part in parts:
            writer.add([added(record) for record in part], progress)
        assert read_progress(connection) == (progress if parts else {})
    return Queries(index)


def pages(queries: Queries, filter_: Filter, *, newest_first: bool, limit: int) -> Iterator[Page]:
    cursor = None
    while True:
        page = queries.page(filter_, cursor=cursor, newest_first=newest_first, limit=limit)
        yield page
        if page.next is None:
            return
        cursor = page.next


def sequences(entries: Sequence[Entry]) -> list[int]:
    return [entry.sequence for entry in entries]


@settings(max_examples=30)
@given(histories(), st.lists(filters(), min_size=5, max_size=5), st.data())
def test_an_index_finds_what_a_list_of_records_holds(
    history: list[Record], wanted: list[Filter], data: st.DataObject
) -> None:
    order = data.draw(st.permutations([*history, *history[:3]]))  # some come twice
    size = data.draw(st.integers(1, 7))
    parts = [order[at : at + size] for at in range(0, len(order), size)]
    newest_first, limit = data.draw(st.booleans()), data.draw(st.integers(1, 4))
    with TemporaryDirectory() as folder:
        index = Index(Kafka(), Path(folder))
        queries = filled(index, parts)
        state = index.state()
        assert (state.entries, state.behind) == (len(history), None)
        assert (state.oldest, state.newest) == ((0, len(history) - 1) if history else (None, None))
        for filter_ in wanted:
            every = pages(queries, filter_, newest_first=newest_first, limit=limit)
            passing = [record.sequence for record in history if filter_.matches(record)]
            shown = [sequence for page in every for sequence in sequences(page.entries)]
            assert shown == (passing[::-1] if newest_first else passing)
        for record in history:
            check_entry(queries, record, [each for each in history if each.transaction == record.transaction])
            check_neighbours(queries, record, history)


def check_entry(queries: Queries, record: Record, siblings: list[Record]) -> None:
    entry = queries.entry(record.sequence)
    assert entry is not None
    assert (entry.topic, entry.partition, entry.offset) == ("t", record.sequence % 2, 100 + record.sequence)
    assert (entry.kind, (entry.database, entry.table)) == (kind_of(record), objects_of(record)[0])
    assert (entry.rows, entry.keys) == (len(record.rows), tuple(keys_of(record)))
    assert (entry.gtid, entry.ts_us) == (record.transaction, record.ts_us)
    of_transaction = [each.sequence for each in siblings]
    assert (entry.first, entry.last) == (of_transaction[0], of_transaction[-1])
    first = queries.transaction(record.sequence, limit=2)
    rest = () if first.next is None else queries.transaction(record.sequence, cursor=first.next).entries
    assert sequences([*first.entries, *rest]) == of_transaction
    numbered = queries.keys(record.sequence, limit=2)
    numbered += queries.keys(record.sequence, after=numbered[-1][0]) if numbered else []
    assert [key for _, key in numbered] == list(keys_of(record))


def check_neighbours(queries: Queries, record: Record, history: list[Record]) -> None:
    table = objects_of(record)[0]
    for key in range(5):
        text = key_of([value(key)])
        changes = [
            each.sequence
            for each in history
            if each.rows and objects_of(each)[0] == table and text in keys_of(each)
        ]  # fmt: skip
        before, after = queries.row_before(record.sequence, text), queries.row_after(record.sequence, text)
        assert before == (queries.entry(max(found)) if (found := [n for n in changes if n < record.sequence]) else None)
        assert after == (queries.entry(min(found)) if (found := [n for n in changes if n > record.sequence]) else None)


def row(sequence: int, *, key: int, transaction: str = "", index: int = 0, last: bool = True) -> Record:
    return Record(
        Uri("r", "d", "a"), sequence, Position("b.1", 4), transaction or f"uuid:{sequence}", index, last, sequence,
        "Add", columns=("v", "id"), key=("id",), rows=[Row(None, image(key))],
    )  # fmt: skip


def test_a_full_index_drops_its_oldest_entries_and_says_from_which_one_on_it_is_complete(tmp_path: Path) -> None:
    index, most_bytes = Index(Kafka(), tmp_path), 200_000
    history = [row(sequence, key=sequence % 10) for sequence in range(5_000)]
    # The two halves arrive at the same time, as from two topics of which one is read faster.
    parts = [history[at : at + 100] for half in range(25) for at in (half * 100, 2_500 + half * 100)]
    queries = filled(index, parts, most_bytes=most_bytes)
    state = index.state()
    assert state.oldest is not None and state.oldest > 2_500 and state.newest == 4_999
    assert state.entries == 5_000 - state.oldest
    assert most_bytes // 2 < state.bytes <= most_bytes
    shown = queries.page(Filter(key="3"), limit=1_000, newest_first=False)
    assert sequences(shown.entries) == [n for n in range(state.oldest, 5_000) if n % 10 == 3]
    assert queries.entry(state.oldest - 1) is None
    with closing(index.file.connect()) as connection:
        for table in ("changed", "row_key", "leader_transaction"):
            ((count,),) = connection.execute(f"SELECT count(*) FROM {table}")
            assert count == state.entries


def test_a_partition_that_is_read_from_its_middle_on_raises_the_first_sequence(tmp_path: Path) -> None:
    index = Index(Kafka(), tmp_path)
    filled(index, [[row(3, key=1), row(4, key=1)]])
    with closing(index.file.connect()) as connection:
        writer = Writer(connection, most_bytes=UNLIMITED)
        writer.add([added(row(9, key=1))], {}, floor=9)
        writer.add([added(row(8, key=1)), added(row(10, key=1))], {}, floor=9)
    state = index.state()
    assert (state.oldest, state.newest, state.entries) == (9, 10, 2)


def test_a_transaction_that_is_not_complete_has_no_last_record_yet(tmp_path: Path) -> None:
    index = Index(Kafka(), tmp_path)
    begun = [row(5, key=1, transaction="t"), row(6, key=2, transaction="t", index=1)]
    begun[0].last = begun[1].last = False
    queries = filled(index, [begun])
    entry = queries.entry(6)
    assert entry is not None and (entry.first, entry.last) == (5, None)
    queries = filled(index, [[row(7, key=3, transaction="t", index=2)]])
    assert {each.last for each in queries.transaction(6).entries} == {7}
    assert sequences(queries.transaction(6).entries) == [5, 6, 7]


def test_keys_with_the_same_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("index", "query"):
        monkeypatch.setattr(f"cdc.browse.{module}.hash_of", len)
    queries = filled(Index(Kafka(), tmp_path), [[row(sequence, key=sequence % 2) for sequence in range(6)]])
    assert sequences(queries.page(Filter(key="1")).entries) == [5, 3, 1]
    assert (queries.row_before(4, "1"), queries.row_after(2, "0")) == (queries.entry(3), queries.entry(4))


@pytest.mark.parametrize("few", [0, 100])
def test_tables_are_found_whether_they_have_many_entries_or_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("cdc.browse.query._FEW_ENTRIES", few)
    history = [row(sequence, key=1) for sequence in range(6)]
    history[2].uri = history[3].uri = Uri("r", "d", "b")
    history[4] = Record(
        Uri("r", "d"), 4, Position("b.1", 4), "uuid:4", 0, True, 4, "Query",
        affects=({"action": "RenameTable", "uri": "flv://r/d/c", "to": "flv://r/d/b"},),
    )  # fmt: skip
    queries = filled(Index(Kafka(), tmp_path), [history])
    assert sequences(queries.page(Filter(tables=("d.b",))).entries) == [4, 3, 2]
    assert sequences(queries.page(Filter(tables=("d.[ac]",))).entries) == [5, 4, 1, 0]
    assert sequences(queries.page(Filter(tables=("d.b",), key="1")).entries) == [3, 2]


def test_others_get_no_right_to_the_file(tmp_path: Path) -> None:
    index = Index(Kafka(), tmp_path / "new")
    filled(index, [[row(0, key=1)]])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes and set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_damaged_file_is_empty_and_one_of_another_version_is_made_anew(tmp_path: Path) -> None:
    index = Index(Kafka(), tmp_path)
    queries = filled(index, [[row(0, key=1)]])
    with closing(index.file.connect()) as connection:
        connection.execute("UPDATE about SET value = 0 WHERE name = 'version'")
    assert index.state().entries == 0 and queries.entry(0) is None
    filled(index, [[row(0, key=1)]])
    assert queries.entry(0) is not None
    index.file.remove()
    index.file.path.write_bytes(b"not a database" * 100)
    assert index.state().entries == 0
    assert queries.page(Filter()) == Page((), None) and queries.row_before(3, "1") is None


def test_a_folder_that_can_not_be_made_is_the_users_matter(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot use the index's folder"):
        Index(Kafka(), tmp_path / "file").state()
