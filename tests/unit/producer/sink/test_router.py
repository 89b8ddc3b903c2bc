"""The router: sequences, the last record of a transaction, splitting, filters, and going on with a half-sent one."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import Filters
from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import PromiseError, UserError
from cdc.model.commit_entry import Partial
from cdc.model.position import Position
from cdc.model.record import Record
from cdc.producer.decode.changes import Begin, Refused, Rows, RowsTransaction, Statement, TableShape
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.router import Router, content_sum, unordered_sum
from cdc.producer.skips import Skips
from cdc.sql.effects import ANY_DATABASE, Effect
from tests.generators.binlog_events import event

EVENT = event(30, bytes(77))
GTID = "5f6a0f4e-0000-11ee-8000-000000000001:7"


TABLE = TableShape("flvDb", "pet", '"columns":["name"],"key":["name"]', {}, 1)


def router(**changes: Any) -> Router:
    settings: dict[str, Any] = {
        "resource": "mysql-srv1",
        "topics": Topics("t"),
        "filters": Filters(),
        "record_bytes": 1000,
        "next_sequence": 5,
    }
    return Router(**settings | changes)


def rows(*names: str) -> Rows:
    return Rows(EVENT, TABLE, "Add", [json.dumps({"cols": [{"String": name}]}).encode() for name in names], 0)


def row_sum(name: str) -> int:
    return content_sum("flv://mysql-srv1/flvDb/pet", json.dumps({"cols": [{"String": name}]}))


def statement(*effects: Effect) -> Statement:
    return Statement(EVENT, "flvDb", "DROP TABLE …", effects, {"database": "flvDb"})


def transaction(route: Router, *changes: Rows | Statement, begun: bool = False) -> Iterator[Message]:
    if not begun:
        route.begin(Begin(GTID, GTID, 1_700_000_000_123_456))
    for change in changes:
        yield from route.rows(change) if isinstance(change, Rows) else route.statement(change)
    yield from route.commit()


@given(st.lists(st.lists(st.text(max_size=100), min_size=1, max_size=6), max_size=4), st.booleans())
def test_a_transaction_that_arrived_whole_makes_the_same_messages(names: list[list[str]], partial: bool) -> None:
    changes = [rows(*each) for each in names]
    first = Partial(GTID, 1, len(names[0]), row_sum(names[0][-1])) if partial and len(names) > 1 else None
    cut = {"partial": first}
    begin = Begin(GTID, GTID, 1_700_000_000_123_456)
    piecewise, whole = router(**cut), router(**cut)
    wanted = list(transaction(piecewise, *changes))
    assert list(whole.whole(RowsTransaction(begin, changes, "binlog.000001", 500))) == wanted
    assert (whole.next_sequence, whole.sent) == (piecewise.next_sequence, piecewise.sent)


def records(messages: Iterator[Message]) -> list[Record]:
    return [Record.parse(message.value, where="here") for message in messages]


def test_one_row_becomes_one_record_that_is_the_last() -> None:
    (message,) = transaction(router(), rows("Puffball"))
    record = Record.parse(message.value, where="here")
    assert (record.sequence, record.index, record.last, record.transaction) == (5, 0, True, GTID)
    assert str(record.position) == "binlog.000001:400"
    assert record.rows[0].after == [{"String": "Puffball"}]
    assert (message.key, message.time_ms) == (b"flv://mysql-srv1/flvDb/pet", 1_700_000_000_123)
    assert json.loads(dict(message.headers)["mysql_binlog_headers"] or "")["event_type"] == 30


@given(st.lists(st.lists(st.text(max_size=300), min_size=1, max_size=6), min_size=1, max_size=6))
def test_any_split_keeps_rows_order_sequence_and_one_last(events: list[list[str]]) -> None:
    found = records(transaction(router(), *(rows(*names) for names in events)))
    assert [record.sequence for record in found] == list(range(5, 5 + len(found)))
    assert [record.index for record in found] == list(range(len(found)))
    assert [record.last for record in found] == [False] * (len(found) - 1) + [True]
    values = [row.after[0]["String"] for record in found for row in record.rows if row.after]
    assert values == [name for names in events for name in names]


def values(found: list[Record]) -> list[str]:
    return [row.after[0]["String"] for record in found for row in record.rows if row.after]


def recut(names: list[str], sizes: list[int]) -> list[Rows | Statement]:
    """The rows ``names`` behind a statement, in events of other ``sizes``, as another server logs them."""
    found: list[Rows | Statement] = [statement(Effect("CreateTable", "flvDb", "pet"))]
    left = names
    for size in sizes:
        found += [rows(*left[:size])] if left else []
        left = left[size:]
    return [*found, *([rows(*left)] if left else [])]


NAMES = [f"{number} " + "x" * (number * 37 % 400) for number in range(12)]
SIZES = st.lists(st.integers(min_value=1, max_value=5), max_size=8)


@given(SIZES, SIZES, st.integers(300, 2000), st.data())
def test_a_transaction_that_is_half_out_goes_on_however_it_is_cut(
    before: list[int], now: list[int], record_bytes: int, data: st.DataObject
) -> None:
    """On another server, with another version and other sizes: no row twice, none lost, no gap in sequence or index."""
    first = router()
    sent: list[Record] = []
    first.begin(Begin(GTID, GTID, 0))
    messages = (
        message
        for change in recut(NAMES, before)
        for message in (first.rows(change) if isinstance(change, Rows) else first.statement(change))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        sent += records(itertools.islice(messages, 1))
    messages.close()  # a record counts when more is asked for, so the newest does not
    out = first.partial
    if out is None:
        return
    sent = sent[: out.records]
    assert out.rows == 1 + len(values(sent))
    second = router(partial=out, next_sequence=5 + out.records, record_bytes=record_bytes)
    second.begin(Begin(GTID, GTID, 0))
    assert (second.sent, second.partial) == (0, None)
    rest = records(transaction(second, *recut(NAMES, now), begun=True))
    assert values(sent + rest) == NAMES
    assert [record.sequence for record in sent + rest] == list(range(5, 5 + len(sent + rest)))
    assert [record.index for record in sent + rest] == list(range(len(sent + rest)))
    assert [record.last for record in rest] == [False] * (len(rest) - 1) + [True]


@pytest.mark.parametrize("sent", [2, 3])
def test_a_transaction_that_has_become_shorter_stops(sent: int) -> None:
    with pytest.raises(PromiseError, match="but it now has 2"):
        list(transaction(router(partial=Partial(GTID, 1, sent, row_sum("b"))), rows("a"), rows("b")))


def test_a_transaction_with_other_rows_stops_before_one_of_them_leaves() -> None:
    partial = Partial(GTID, 1, 2, row_sum("b"))
    with pytest.raises(PromiseError, match="not all of them are those") as caught:
        list(transaction(router(partial=partial), rows("a", "more", "b", "c")))
    assert "the server and the version that wrote them" in caught.value.hint


KEYLESS = TableShape("flvDb", "log", '"columns":["name"]', {}, 1)


def deleted(*names: str) -> Rows:
    texts = [json.dumps({"cols": [{"String": name}]}).encode() for name in names]
    return Rows(EVENT, KEYLESS, "Delete", texts, 0)


def test_rows_without_a_key_are_summed_up_since_a_replica_logs_them_in_another_order() -> None:
    """The committed rows count with the same rows in any order, and never with the same last row alone."""
    first = router(record_bytes=1)
    first.begin(Begin(GTID, GTID, 0))
    sent = records(first.rows(deleted("a", "b", "c", "d", "e")))
    sent += records(first.rows(rows("kept")))
    out = first.partial
    assert out is not None
    assert (out.rows, len(sent)) == (5, 5)
    assert out.unordered
    for order in ("cabed", "abcde", "edcba"):
        resumed = router(partial=out, next_sequence=10)
        found = records(transaction(resumed, deleted(*order), rows("kept", "new")))
        assert values(found) == ["kept", "new"]
    with pytest.raises(PromiseError, match="not all of them are those"):
        list(transaction(router(partial=out), deleted("f", "b", "c", "d", "e"), rows("kept", "new")))
    # An older version has written no sum: the last row alone is compared.
    former = replace(out, unordered=0)
    list(transaction(router(partial=former), deleted("f", "b", "c", "d", "e"), rows("kept", "new")))


def test_long_rows_are_told_apart_by_length_and_ends() -> None:
    long = ["x" * 5000 + "y", "x" * 5001 + "y", "x" * 5001]
    assert len({content_sum("u", text) for text in long} | {content_sum("v", long[0])}) == 4


def test_rows_share_a_record_only_up_to_its_size() -> None:
    messages = list(transaction(router(), rows(*["é" * 100] * 20)))
    sizes = [
        len(json.dumps(json.loads(message.value)["operation"], ensure_ascii=False).encode()) for message in messages
    ]
    assert len(messages) > 1
    assert max(sizes) < 1200


def test_what_is_passed_over_has_not_left_again() -> None:
    route, sent = router(partial=Partial(GTID, 3, 3, row_sum("c"))), []
    route.begin(Begin(GTID, GTID, 0))
    for name in "abcdef":
        list(route.rows(rows(name)))
        sent.append(route.sent)
    assert sent == [0, 0, 3, 3, 4, 5]  # the newest one is held


@pytest.mark.parametrize("whole", [False, True])
def test_another_transaction_than_the_one_half_out_stops_unless_nothing_of_it_passes(whole: bool) -> None:
    route = router(partial=Partial("other:1", 2, 2))
    begin = Begin(GTID, GTID, 0)
    none = [route.whole(RowsTransaction(begin, [], "binlog.000001", 500))] if whole else [transaction(route)]
    assert [list(messages) for messages in none] == [[]]
    messages = (
        route.whole(RowsTransaction(begin, [rows("a")], "binlog.000001", 500))
        if whole
        else transaction(route, rows("a"))
    )
    with pytest.raises(PromiseError, match="partially committed"):
        list(messages)


def test_an_empty_transaction_leaves_nothing() -> None:
    route = router()
    assert list(transaction(route)) == []
    assert route.next_sequence == 5


def test_a_statement_follows_the_objects_it_names() -> None:
    only = Filters(include_dbs=("flvDb",))
    assert records(transaction(router(filters=only), statement(Effect("DropTable", "flvDb", "a"))))
    assert not records(transaction(router(filters=only), statement(Effect("DropTable", "other", "a"))))
    with pytest.raises(PromiseError, match="passes the filters"):
        list(transaction(router(filters=only), statement(Effect("RenameTable", "other", "a", ("flvDb", "a")))))


@pytest.mark.parametrize(
    ("clause", "incomplete", "checked"),
    [
        ("ADD FOREIGN KEY (o) references owner (id)", {("flvDb", "owner")}, False),
        ("ADD FOREIGN KEY (o) references owner (id)", {}, True),
        ("ADD o INT", {("flvDb", "owner")}, True),
    ],
)
def test_a_foreign_key_is_not_checked_while_what_it_refers_to_may_be_missing(
    clause: str, incomplete: set[tuple[str, str]], checked: bool
) -> None:
    context: dict[str, Any] = {"foreign_key_checks": True}
    effects = (Effect("AlterTable", "flvDb", "pet"),)
    route = router()
    route.incomplete = frozenset(incomplete)
    change = replace(statement(*effects), text=f"ALTER TABLE pet {clause}", context=context)
    (record,) = records(transaction(route, change))
    assert record.context == {"foreign_key_checks": checked}
    assert context == {"foreign_key_checks": True}


def test_with_a_topic_a_table_each_record_goes_to_its_table() -> None:
    names = Topics("t", layout=PER_TABLE, prefix="p.")
    pet = Effect("AlterTable", "flvDb", "pet")
    many = [
        rows("Puffball"),
        statement(pet),
        statement(pet, pet._replace(name="owner")),
        statement(Effect("RenameTable", "flvDb", "pet", ("flvDb", "animal"))),
        statement(Effect("CreateView", "flvDb", "pets")),
        statement(Effect("CreateDatabase", "flvDb")),
    ]
    topics = [message.topic for message in transaction(router(topics=names), *many)]
    assert topics == ["p.flvDb_pet"] * 2 + ["p.mysql_binlog_events"] * 4


def test_what_a_follower_cannot_repeat_stops_only_where_it_passes_the_filters() -> None:
    alter = statement(Effect("AlterTable", "flvDb", "a", unfaithful="rows are numbered anew"))
    with pytest.raises(PromiseError, match="rows are numbered anew"):
        list(transaction(router(), alter))
    assert not list(transaction(router(filters=Filters(exclude_tables=("flvDb.a",))), alter))


PET = "flv://mysql-srv1/flvDb/pet"
REFUSED = Refused(EVENT, PromiseError("it can't be read", hint="mend it"), (Effect("SkipTable", "flvDb", "pet"),))


def test_a_refused_event_stops_the_stream_with_the_way_past_it() -> None:
    route = router()
    route.begin(Begin(GTID, GTID, 0))
    with pytest.raises(PromiseError) as caught:
        list(route.refused(REFUSED))
    assert str(caught.value) == (
        "it can't be read; at binlog.000001:400; hint: mend it; "
        "to skip this event for good: cdc-producer PROFILE --skip binlog.000001:400"
    )
    alter = statement(Effect("AlterTable", "flvDb", "a", unfaithful="rows are numbered anew"))
    with pytest.raises(PromiseError, match="--skip binlog"):
        list(transaction(router(), alter))


def test_a_refused_event_of_what_is_left_out_passes() -> None:
    route = router(filters=Filters(exclude_tables=("flvDb.p*",)))
    route.begin(Begin(GTID, GTID, 0))
    assert list(route.refused(REFUSED)) == list(route.commit()) == []
    assert route.filtered == 1
    with pytest.raises(PromiseError):
        list(route.refused(Refused(EVENT, REFUSED.error, (ANY_DATABASE,))))


def test_a_statements_triggers_may_write_to_other_tables_of_the_database() -> None:
    logged = Refused(EVENT, REFUSED.error, REFUSED.effects, fires=True)
    with pytest.raises(PromiseError, match="--skip binlog"):
        list(router(filters=Filters(exclude_tables=("flvDb.p*",))).refused(logged))
    assert list(router(filters=Filters(exclude_dbs=("flvDb",))).refused(logged)) == []


@pytest.mark.parametrize("sent", [0, 1, 2, 3])
def test_a_skipped_event_is_a_record_and_is_counted_where_it_is_out(sent: int) -> None:
    def replicated(route: Router) -> list[Record]:
        route.begin(Begin(GTID, GTID, 0))
        changes = [route.rows(rows("a")), route.refused(REFUSED), route.rows(rows("b")), route.rows(rows("c"))]
        return records(message for change in [*changes, route.commit()] for message in change)

    asked = router()
    asked.skips = Skips(["binlog.000001:400"])
    whole = replicated(asked)
    assert [(record.operation, record.index, record.last) for record in whole] == [
        ("Add", 0, False), ("Skipped", 1, False), ("Add", 2, False), ("Add", 3, True),
    ]  # fmt: skip
    assert whole[1].query == "WriteRows at binlog.000001:400: it can't be read"
    assert whole[1].affects == ({"action": "SkipTable", "uri": "flv://mysql-srv1/flvDb/pet"},)
    newest = {1: content_sum(PET, rows("a").rows[-1].decode()), 2: content_sum("flv://mysql-srv1/flvDb", "skipped"),
              3: content_sum(PET, rows("b").rows[-1].decode())}  # fmt: skip
    partial = Partial(GTID, sent, sent, newest[sent]) if sent else None
    resumed = router(next_sequence=5 + sent, partial=partial)
    if sent < 2:
        with pytest.raises(PromiseError, match="--skip"):
            replicated(resumed)
    else:
        assert replicated(resumed) == whole[sent:]


def test_a_place_to_skip_is_checked() -> None:
    for text in ("17", "binlog.000001", "binlog.1:4", "binlog.000001:4/x"):
        with pytest.raises(UserError, match="is not a position in a binlog"):
            Skips([text])
    skips = Skips(["binlog.000009:400/2", "binlog.000010:4"])
    skips.check_passed(Position("binlog.000009", 400))
    with pytest.raises(UserError, match="no event was refused at binlog"):
        skips.check_passed(Position("binlog.000010", 4))
    assert skips.allow("binlog.000009:400/2")
    assert not skips.allow("binlog.000009:400")
    skips.check_passed(Position("binlog.000010", 4))
    with pytest.raises(UserError, match="there is no event at binlog"):
        skips.check_end(Position("binlog.000010", 4))


def test_an_event_is_renamed_by_the_filters_of_its_databases_alone() -> None:
    rename = statement(Effect("RenameEvent", "flvDb", "e", ("flvDb", "hidden")))
    assert records(transaction(router(filters=Filters(exclude_tables=("flvDb.hidden",))), rename))


@pytest.mark.parametrize(
    ("effect", "passes"),
    [
        (Effect("CreateTable", "here", "a"), True),
        (Effect("CreateTable", "here", "left_out"), False),
        (Effect("CreateTable", "away", "a"), False),
        (Effect("CreateTable", "here", "left\udcfc"), True),
        (Effect("CreateTable", "away", "a\udcfc"), False),
        (Effect("CreateTable", "\udcfc", "a"), True),
    ],
)
def test_a_statement_that_cannot_be_read_stops_only_where_it_may_pass(effect: Effect, passes: bool) -> None:
    filters = Filters(exclude_dbs=("away",), exclude_tables=("*.left*",))
    change = Statement(EVENT, "", "CREATE TABLE …", (effect,), {}, "a text in latin2 cannot be read")
    route = router(filters=filters)
    if not passes:
        assert list(transaction(route, change)) == []
        assert route.filtered == 1
        return
    with pytest.raises(PromiseError, match="in latin2 cannot be read: CREATE TABLE …") as caught:
        list(transaction(route, change))
    assert "filters" in caught.value.hint


def test_the_exact_bytes_of_a_statement_go_beside_its_text() -> None:
    change = replace(statement(Effect("CreateTable", "flvDb", "pet")), exact=b"CREATE TABLE \xff")
    for each, more in ((change, {"Bytes": "Q1JFQVRFIFRBQkxFIP8="}), (replace(change, exact=None), {})):
        message, *_ = transaction(router(), each)
        assert json.loads(message.value)["operation"] == {"Query": change.text} | more


def test_rows_that_a_filter_turns_are_summed_up_by_what_they_became() -> None:
    """In a table without a key another server may log the updates out of which they came in another order."""
    keyless, update = TableShape("d", "t", '"columns":["a"]', {}, 1), event(31, bytes(77))
    texts = [b'{"cols":[{"SignedInteger":1}]}']
    added, deleted = (Rows(update, keyless, operation, texts, 0) for operation in ("Add", "Delete"))
    sums = {unordered_sum(each, "u", texts) for each in (added, deleted, deleted._replace(event=event(32, bytes(77))))}
    assert len(sums) == 3
    assert 0 not in sums
    assert unordered_sum(added._replace(event=EVENT), "u", texts) == 0
    assert unordered_sum(added._replace(table=TABLE), "u", texts) == 0


def test_a_server_that_logged_them_in_another_order_does_not_go_on_amid_them() -> None:
    """Of four inserts out of updates two are committed, and the second one is the same in the other order."""
    keyless, update = TableShape("flvDb", "pet", '"columns":["a"]', {}, 1), event(31, bytes(77))
    texts = [b'{"cols":[{"SignedInteger":%d}]}' % number for number in (2, 3, 4, 5)]
    change = Rows(update, keyless, "Add", texts, 0)
    first = router(record_bytes=1)
    first.begin(Begin(GTID, GTID, 0))
    written = list(first.rows(change._replace(rows=texts[:3])))
    partial = first.partial
    assert len(written) == 2
    assert partial is not None
    assert partial.rows == 2
    rest = [*transaction(router(record_bytes=1, partial=partial), change)]
    assert [json.loads(bytes(each.value))["transaction"]["index"] for each in rest] == [2, 3]
    with pytest.raises(PromiseError, match="not all of them are those"):
        list(transaction(router(record_bytes=1, partial=partial), change._replace(rows=[texts[2], *texts[1::-1]])))
