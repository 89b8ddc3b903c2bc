"""Whether the types of a batch's columns can be compared without a query; none is possible while batches are under
way."""

from dataclasses import replace
from typing import Any, cast

import pytest

from cdc.consumer.apply import leader_types
from cdc.consumer.apply.leader_types import LeaderTypes
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Uri
from tests.unit.consumer.plan.test_planner import record

PLAIN, RELATED = TableSchema(frozenset("a"), definitions={"a": "int"}), TableSchema(
    frozenset("a"), definitions={"a": "int"}, related=True
)  # fmt: skip


class Asked:
    """A session that notes what it is asked, and has stored no types."""

    schema = "cdc"

    def __init__(self) -> None:
        self.questions: list[str] = []

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.questions.append(sql)
        return []


def types_on(session: Asked) -> LeaderTypes:
    return LeaderTypes(cast("Any", session), on_follower=lambda uri: uri, passes=lambda uri: True)


def of(kind: str = "") -> Record:
    return replace(record(1, "Add"), types=(kind,) if kind else ())


def knows(types: LeaderTypes, each: Record, shape: TableSchema) -> bool:
    return types.know([each], lambda _: shape)


def test_types_are_known_once_they_were_read_or_came_with_a_record() -> None:
    session, other = Asked(), Asked()
    types = types_on(session)
    assert not knows(types, of(), PLAIN)
    types.learn([Uri("srv", "db", "t")], over=cast("Any", other))
    types.learn([Uri("srv", "db", "t")], over=cast("Any", other))
    assert (len(session.questions), len(other.questions)) == (0, 1)
    assert knows(types, of(), PLAIN)
    assert len(list(types.note([of("int")]))) == 1
    assert list(types.note([of("int"), of()])) == []
    assert knows(types, of("bigint"), PLAIN)
    types.require_fit(of("int"), PLAIN)
    assert session.questions == []


def test_foreign_keys_are_asked_for_with_each_definition_and_new_types(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Record] = []
    monkeypatch.setattr(leader_types, "require_no_keys_across", lambda session, each, passes: asked.append(each))
    types = types_on(Asked())
    list(types.note([of("int")]))
    assert not knows(types, of(), RELATED)
    types.require_fit(of(), RELATED)
    assert len(asked) == 1
    assert knows(types, of(), RELATED)
    assert knows(types, of("int"), RELATED)
    assert not knows(types, of("bigint"), RELATED)
    assert not knows(types, of(), replace(RELATED, indexed=frozenset("a")))
