"""The router's messages, byte for byte; what it counts, and what it logs of events that it passes over."""

import json
import logging
from typing import Any

import pytest

from cdc.config.filters import Filters
from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import PromiseError
from cdc.model.commit_entry import Partial
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import (
    Begin,
    Beginning,
    Chunk,
    Commit,
    Copied,
    CopyState,
    Creation,
    Refused,
    Rows,
    RowsTransaction,
    Statement,
    Structure,
    TableShape,
)
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.router import Router, content_sum
from cdc.producer.skips import Skips
from cdc.sql.effects import Effect
from tests.unit.producer.sink.test_router import EVENT, GTID, PET, REFUSED, TABLE, router, row_sum, rows, statement

BEGIN = Begin(GTID, GTID, 1_700_000_000_123_456)
HEADER = (
    b'{"timestamp":1700000000,"event_type":30,"server_id":1,"event_length":100,"next_event_position":500,'
    b'"event_flags":0}'
)
START = '"bn_file":{"fileName":"binlog.000001","offset":400},"transaction":{"id":"' + GTID + '",'
OTHER = TableShape("flvDb", "owner", '"columns":["id"],"key":null', {}, 1)


def message(body: str, *, uri: str = PET, sequence: int = 5, index: int = 0, last: bool = True, **more: Any) -> Message:
    value = f'{{"uri":"{uri}","sequence":{sequence},{START}"index":{index},"last":{json.dumps(last)},'
    value += f'"ts_us":1700000000123456}},{body}}}'
    topic = more.get("topic", "t")
    return Message(topic, uri.encode(), value.encode(), 1_700_000_000_123, [("mysql_binlog_headers", HEADER)])


def added(name: str, columns: str = TABLE.columns_json) -> str:
    return f'{columns},"operation":{{"Add":{{"rows":[{{"cols": [{{"String": "{name}"}}]}}]}}}}'


def sent(route: Router, *changes: Rows | Statement | Refused, begin: Begin = BEGIN) -> list[Message]:
    found = [*route.route(begin)]
    for change in changes:
        found += route.route(change)
    return [*found, *route.route(Commit(Position("binlog.000001", 500)))]


@pytest.mark.parametrize("whole", [False, True])
def test_rows_make_these_messages(whole: bool) -> None:
    route = router()
    changes = [rows("a"), rows("b")._replace(table=OTHER)]
    uri = "flv://mysql-srv1/flvDb/owner"
    for sequence in (5, 7):
        given = route.whole(RowsTransaction(BEGIN, changes, "binlog.000001", 500)) if whole else sent(route, *changes)
        assert list(given) == [
            message(added("a"), sequence=sequence, last=False),
            message(added("b", OTHER.columns_json), uri=uri, sequence=sequence + 1, index=1),
        ]
        assert (route.next_sequence, route.sent, route.partial) == (sequence + 2, 0, None)


@pytest.mark.parametrize("whole", [False, True])
def test_types_are_told_by_the_first_record_of_a_table(whole: bool) -> None:
    route = router(record_bytes=20)
    table = TableShape("flvDb", "pet", TABLE.columns_json, {}, 1, ',"types":["varchar(20) character set utf8mb4"]')
    changes = [rows("a", "b")._replace(table=table), rows("c")._replace(table=table)]
    given = route.whole(RowsTransaction(BEGIN, changes, "binlog.000001", 500)) if whole else sent(route, *changes)
    told = [json.loads(each.value).get("types") for each in given]
    types = ["varchar(20) character set utf8mb4"]
    assert told == [types, None, None]


@pytest.mark.parametrize(
    ("effect", "again"),
    [
        (Effect("AlterTable", "flvDb", "pet"), True),
        (Effect("RenameTable", "flvDb", "toy", to=("flvDb", "pet")), True),
        (Effect("DropDatabase", "flvDb"), True),
        (Effect("AlterTable", "flvDb", "toy"), False),
    ],
)
def test_types_are_told_again_after_a_statement_on_the_table(effect: Effect, again: bool) -> None:
    """It may be another table by then, or the same one after an ALTER that was reverted."""
    route = router()
    table = TableShape("flvDb", "pet", TABLE.columns_json, {}, 1, ',"types":["int"]')
    sent(route, rows("a")._replace(table=table))
    sent(route, statement(effect))
    whole = RowsTransaction(BEGIN, [rows("b")._replace(table=table)] * 2, "binlog.000001", 500)
    assert [json.loads(each.value).get("types") for each in route.whole(whole)] == [["int"] if again else None, None]


@pytest.mark.parametrize("whole", [False, True])
def test_flags_and_modes_are_in_the_messages(whole: bool) -> None:
    route, change, begin = router(), rows("a")._replace(flags=2), BEGIN._replace(sql_mode="NO_ZERO_DATE")
    given = route.whole(RowsTransaction(begin, [change], "", 500)) if whole else sent(route, change, begin=begin)
    body = added("a").replace(',"operation"', ',"flags":2,"sql_mode":"NO_ZERO_DATE","operation"')
    assert list(given) == [message(body)]


def test_a_whole_transaction_counts_as_open_until_all_of_it_has_left() -> None:
    route = router()
    messages = route.whole(RowsTransaction(BEGIN, [rows("a"), rows("b"), rows("c")], "binlog.000001", 500))
    for _ in range(3):
        next(messages)
        assert (route.sent, route.partial, route.next_sequence) == (3, None, 5)
    assert list(messages) == []
    assert (route.sent, route.next_sequence) == (0, 8)


def test_a_large_event_is_split_in_a_whole_transaction_too() -> None:
    names = ["x" * 400, "y" * 400, "z" * 400]
    piecewise = sent(router(record_bytes=900), rows(*names))
    whole = list(router(record_bytes=900).whole(RowsTransaction(BEGIN, [rows(*names)], "binlog.000001", 500)))
    assert whole == piecewise
    assert [len(json.loads(each.value)["operation"]["Add"]["rows"]) for each in whole] == [2, 1]


def test_what_has_left_is_counted_record_by_record() -> None:
    route = router()
    assert (route.sent, route.partial) == (0, None)
    route.begin(BEGIN)
    assert (route.sent, route.partial) == (0, None)
    list(route.rows(rows("a", "b")))
    assert (route.sent, route.partial) == (0, None)
    list(route.rows(rows("c")))
    assert (route.sent, route.partial) == (1, Partial(GTID, 1, 2, row_sum("b")))
    list(route.statement(statement(Effect("DropTable", "flvDb", "pet"))))
    assert (route.sent, route.partial) == (2, Partial(GTID, 2, 3, row_sum("c")))
    list(route.rows(rows("d")))
    dropped = content_sum("flv://mysql-srv1/flvDb", "DROP TABLE …")
    assert (route.sent, route.partial) == (3, Partial(GTID, 3, 4, dropped))
    list(route.commit())
    assert (route.sent, route.partial, route.next_sequence) == (0, None, 9)
    # The next transaction counts from 0 again.
    list(route.commit())
    assert [json.loads(each.value)["transaction"]["index"] for each in sent(route, rows("e"), rows("f"))] == [0, 1]


def test_a_refused_message_has_not_left() -> None:
    route = router()
    route.begin(BEGIN)
    list(route.rows(rows("a")))
    messages = route.rows(rows("b"))
    next(messages)
    messages.close()
    assert (route.sent, route.next_sequence) == (0, 5)


def test_a_statement_makes_this_message() -> None:
    effects = (
        Effect("RenameTable", "flvDb", "pet", ("flvDb", "animal")),
        Effect("CreateTable", "flvDb", "new", like=("flvDb", "é")),
        Effect("AlterDatabase", "flvDb"),
    )
    change = Statement(EVENT, "flvDb", 'RENAME "é"', effects, {"database": "flvDb", "sql_mode": ""})
    affects = (
        '[{"action":"RenameTable","uri":"flv://mysql-srv1/flvDb/pet","to":"flv://mysql-srv1/flvDb/animal"},'
        '{"action":"CreateTable","uri":"flv://mysql-srv1/flvDb/new","like":"flv://mysql-srv1/flvDb/%C3%A9"},'
        '{"action":"AlterDatabase","uri":"flv://mysql-srv1/flvDb"}]'
    )
    body = '"operation":{"Query":"RENAME \\"é\\""},"context":{"database":"flvDb","sql_mode":""},"affects":' + affects
    assert sent(router(), change) == [message(body, uri="flv://mysql-srv1/flvDb")]


def test_a_skipped_event_makes_this_message_and_is_logged() -> None:
    logged: list[tuple[str, dict[str, Any]]] = []
    for kind, name in ((30, "WriteRows"), (250, "250")):
        route = router()
        route.skips = Skips(["binlog.000001:400"], log=lambda event, **fields: logged.append((event, fields)))
        event = RawEvent(kind, *EVENT[1:])
        found = sent(route, Refused(event, REFUSED.error, REFUSED.effects, "INSERT …"))
        body = (
            f'"operation":{{"Skipped":{{"event":"{name}","place":"binlog.000001:400","reason":"it can\'t be read",'
            '"text":"INSERT …"}},"affects":[{"action":"SkipTable","uri":"' + PET + '"}]'
        )
        assert found == [message(body, uri="flv://mysql-srv1/flvDb")]
        assert route.filtered == 0
    fields = {"level": logging.WARNING, "what": "it can't be read", "position": "binlog.000001:400"}
    assert logged == [("event skipped", fields)] * 2


def test_a_refused_event_that_does_not_pass_is_logged_and_counted() -> None:
    logged: list[tuple[str, dict[str, Any]]] = []
    route = router(filters=Filters(exclude_dbs=("flvDb",)))
    route.skips = Skips(log=lambda event, **fields: logged.append((event, fields)))
    assert sent(route, REFUSED, REFUSED, statement(Effect("DropTable", "flvDb", "a"))) == []
    assert route.filtered == 3
    fields = {"what": "it can't be read", "position": "binlog.000001:400"}
    assert logged == [("change outside of the filters not replicated", fields)] * 2
    assert sent(route, statement(Effect("DropTable", "flvDb", "a"))) == []
    assert route.filtered == 4


@pytest.mark.parametrize(("fires", "passes"), [(True, True), (False, False)])
def test_a_trigger_may_write_to_what_passes(fires: bool, passes: bool) -> None:
    route = router(filters=Filters(exclude_tables=("flvDb.pet",)))
    route.skips = Skips(["binlog.000001:400"])
    assert len(sent(route, Refused(EVENT, REFUSED.error, REFUSED.effects, "", fires))) == passes


def test_a_statement_that_stops_the_stream_says_where_and_shows_no_values() -> None:
    change = Statement(EVENT, "flvDb", "ALTER TABLE a ADD b INT DEFAULT 'secret'", (
        Effect("AlterTable", "flvDb", "a", unfaithful="the reason"),), {})  # fmt: skip
    route = router()
    with pytest.raises(PromiseError) as caught:
        sent(route, change)
    assert caught.value.where == "binlog.000001:400"
    assert "secret" not in str(caught.value)
    route = router()
    route.skips = Skips(["binlog.000001:400"])
    (found,) = sent(route, change)
    content = json.loads(found.value)
    assert content["operation"]["Skipped"]["text"] == "ALTER TABLE a ADD b INT DEFAULT …"
    assert content["affects"] == [{"action": "SkipTable", "uri": "flv://mysql-srv1/flvDb/a"}]


def test_a_transaction_that_is_partly_committed_goes_on_with_its_counts() -> None:
    done = Partial(GTID, 2, 3, row_sum("c"))
    route = router(partial=done, next_sequence=7)
    found = sent(route, rows("a", "b"), rows("c", "d"), rows("e"))
    assert found == [message(added("d"), sequence=7, index=2, last=False), message(added("e"), sequence=8, index=3)]
    # The next transaction is none of it.
    assert sent(route, rows("a")) == [message(added("a"), sequence=9)]


def test_a_partly_committed_transaction_without_a_count_of_rows_has_none() -> None:
    route = router(partial=Partial(GTID, 1, None, 0), next_sequence=6)
    assert [json.loads(each.value)["sequence"] for each in sent(route, rows("a"), rows("b"))] == [6, 7]
    route = router(partial=Partial(GTID, 1, None, 0), next_sequence=6)
    route.begin(BEGIN)
    list(route.rows(rows("a")))
    list(route.rows(rows("b")))
    assert route.partial == Partial(GTID, 2, 1, row_sum("a"))


def test_counts_go_on_from_those_of_the_committed_part() -> None:
    route = router(partial=Partial(GTID, 2, 3, row_sum("c")), next_sequence=7)
    route.begin(BEGIN)
    assert (route.sent, route.partial) == (0, None)
    list(route.rows(rows("a", "b", "c")))
    assert (route.sent, route.partial) == (2, Partial(GTID, 2, 3, row_sum("c")))
    list(route.rows(rows("d", "e")))
    list(route.rows(rows("f")))
    assert route.partial == Partial(GTID, 3, 5, row_sum("e"))


@pytest.mark.parametrize("change", [rows("a"), statement(Effect("DropTable", "flvDb", "pet"))])
def test_no_other_transaction_comes_before_the_rest_of_a_partly_committed_one(change: Rows | Statement) -> None:
    route = router(partial=Partial("other:1", 2, 2, 0))
    with pytest.raises(PromiseError) as caught:
        sent(route, change)
    assert caught.value.code == "CDC-TOPIC-RECORDS-DIFFER"
    assert str(caught.value) == (
        f"transaction other:1 is partially committed, but the leader continues with {GTID}; hint: the leader lost "
        "binlogs, or has its transactions in another order: point the profile at a server that continues with it, or "
        "give the producer a new topic and the follower a fresh copy"
    )


def test_each_tables_rows_go_to_its_topic() -> None:
    route = router(topics=Topics("t", layout=PER_TABLE, prefix="p."))
    found = sent(route, rows("a"), rows("b")._replace(table=OTHER), rows("c"))
    assert [each.topic for each in found] == ["p.flvDb_pet", "p.flvDb_owner", "p.flvDb_pet"]
    whole = route.whole(RowsTransaction(BEGIN, [rows("a"), rows("b")._replace(table=OTHER)], "binlog.000001", 500))
    assert [each.topic for each in whole] == ["p.flvDb_pet", "p.flvDb_owner"]
    both = RowsTransaction(BEGIN, [rows("a"), rows("b")._replace(table=OTHER), rows("c")], "binlog.000001", 500)
    chunk = Chunk(OTHER.names, "", (), None, None, [], 0)
    created = Beginning(Structure([TABLE.names, OTHER.names], [], []), 0)
    topics = [route.topics(each) for each in (both, rows("a"), copied(chunk), copied(created), BEGIN)]
    assert topics == [
        {"p.flvDb_pet", "p.flvDb_owner"}, {"p.flvDb_pet"}, {"p.flvDb_owner"}, {"p.flvDb_pet", "p.flvDb_owner"}, set(),
    ]  # fmt: skip


def copied(content: Chunk | Beginning, **state: Any) -> Copied:
    """What a copy writes, after which it is in this state."""
    after = CopyState(**{"entry": None, "incomplete": frozenset()} | state)
    return Copied(content, Position("binlog.000001", 500), "header", after)


def test_a_chunk_is_a_transaction_of_its_own_and_what_comes_after_it_has_the_mark_of_its_state() -> None:
    route = router(next_sequence=0)
    state: Any = {"incomplete": frozenset({OTHER.names}), "filters": Filters(exclude_dbs=(OTHER.database,))}
    (found,) = route.route(copied(Chunk(TABLE.names, '"columns":["x"]', (), None, None, ["{}"], 7000), **state))
    content = json.loads(found.value)
    assert (found.headers, content["bn_file"]["offset"]) == ([("cdc_copy", "header")], 500)
    assert (content["sequence"], content["transaction"]["id"], route.next_sequence) == (0, "copy:0", 1)
    marked = [*route.whole(RowsTransaction(BEGIN, [rows("a")._replace(table=OTHER)], "binlog.000001", 600))]
    assert [json.loads(each.value).get("copying") for each in marked] == [True]
    list(route.route(BEGIN))
    assert [*route.route(statement(Effect("DropTable", OTHER.database, "x")))] == []
    assert [*route.route(CopyState(None, frozenset()))] == []
    assert route.incomplete == frozenset()


def test_the_statements_that_create_a_leaders_objects_are_records() -> None:
    route = router(next_sequence=3)
    creations = [
        Creation("CREATE DATABASE flvDb", (Effect("CreateDatabase", "flvDb"),), {"database": "flvDb"}),
        Creation("CREATE TABLE pet (?)", (Effect("CreateTable", "flvDb", "pet"),), {"sql_mode": ""}, b"\xff"),
    ]
    messages = list(route.route(copied(Beginning(Structure([TABLE.names], creations, []), 7000))))
    found = [json.loads(each.value) for each in messages]
    assert [(each["sequence"], each["uri"], each["operation"]["Query"]) for each in found] == [
        (3, "flv://mysql-srv1/flvDb", "CREATE DATABASE flvDb"),
        (4, "flv://mysql-srv1/flvDb", "CREATE TABLE pet (?)"),
    ]
    assert [each["context"]["timestamp_us"] for each in found] == [7000, 7000]
    assert found[1]["affects"] == [{"action": "CreateTable", "uri": "flv://mysql-srv1/flvDb/pet"}]
    assert (found[1]["operation"]["Bytes"], route.next_sequence) == ("/w==", 5)


def test_many_tables_are_told_apart() -> None:
    route = router()
    for number in range(10_050):
        table = TableShape("d", str(number), f'"columns":["{number}"],"key":null', {}, 1)
        (found,) = route.whole(RowsTransaction(BEGIN, [rows("a")._replace(table=table)], "binlog.000001", 500))
        content = json.loads(found.value)
        assert (content["uri"], content["columns"]) == (f"flv://mysql-srv1/d/{number}", [str(number)])
    assert len(route._heads) <= 10_001  # old ones are forgotten
