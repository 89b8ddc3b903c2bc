"""What the producer logs of table copies: one event each, with the table that it is about."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.state import Pending
from cdc.producer.decode.changes import Chunk, Structure

T, U = ("d", "t"), ("d", "u")
ERROR, WARNING = {"level": logging.ERROR}, {"level": logging.WARNING}
NO_COPY = "make the table fit for a copy, then run cdc-producer PROFILE --copy d.t"


def definition(*, inexact: bool = False) -> TableDefinition:
    return TableDefinition("d", "t", (), (), "", "", "", "it has no key", inexact=inexact)


def chunk(after: tuple[str, ...] | None, upto: tuple[str, ...] | None, *rows: str) -> Chunk:
    return Chunk(T, "", (), after, upto, list(rows), 0, keys=(("1",), ("2",)))


@pytest.mark.parametrize(
    ("logged", "events"),
    [
        (lambda log: log.asked(3, Pending(again=(T, U))), [("tables are to be copied", {"tables": 3, "left": 2})]),
        (
            lambda log: log.stopped([T, U], Pending(again=(T, U), rows=7), Pending(again=(U,))),
            [("the copy of a table was stopped", {"table": "d.t", "rows": 7} | WARNING),
             ("a copy can't be stopped", {"table": "d.u", "why": "followers have no other rows of it"} | WARNING)],
        ),
        (lambda log: log.filtered(T), [("the filters leave out a table whose rows were to be sent again",
                                        {"table": "d.t"})]),
        (lambda log: log.replaced(T, None), [("a statement has changed which table is copied",
                                               {"table": "d.t", "now": "none"})]),
        (lambda log: log.held(T), [("the stream waits for the copy of a table as a whole", {"table": "d.t"})]),
        (lambda log: log.exact(T, 2), [("copying a table as a whole", {"table": "d.t", "snapshots": 2})]),
        (
            lambda log: log.inexact(T, 2),
            [("a table that is copied as a whole changes too often",
              {"table": "d.t", "snapshots": 2, "hint": "the producer keeps trying; "
               "stop writes to the table for a second"}
              | WARNING)],
        ),
        (
            lambda log: log.left_out(definition(), repair=True),
            [("rows can't be repaired", {"table": "d.t", "why": "it has no key",
                                         "hint": "audit again, and ask again with the new report"} | ERROR)],
        ),
        (
            lambda log: log.left_out(definition(), repair=False),
            [("a table can't be copied",
              {"table": "d.t", "why": "it has no key; its copy is not complete", "hint": NO_COPY} | ERROR)],
        ),
        (
            lambda log: log.left_out(definition(inexact=True), repair=False),
            [("a table can't be copied",
              {"table": "d.t", "why": "it has no key; its copy is not complete",
               "hint": "leave it out with the filters, since a copy of the leader does not create it on followers; or "
               + NO_COPY} | ERROR)],
        ),
        (
            lambda log: log.unsettled(3),
            [("statements change the objects to create before all of them are read",
              {"tries": 3, "hint": "the producer keeps trying; avoid statements that create, alter or drop tables "
               "until everything is read"} | WARNING)],
        ),
        (
            lambda log: log.created(Structure([T, U], [], [T])),
            [("created what is to be copied", {"tables": 2, "statements": 0}),
             ("a view is invalid, and left out", {"view": "d.t"} | WARNING)],
        ),
        (lambda log: log.repaired(chunk(None, None, "a")), [("rows are sent again",
                                                            {"table": "d.t", "keys": 2, "rows": 1})]),
        (lambda log: log.written(chunk(("1",), ("2",), "a"), Pending(again=(T,)), estimated=9), []),
        (
            lambda log: log.written(chunk(None, None, "a"), Pending(again=(T, U), rows=6), estimated=9),
            [("copying a table", {"table": "d.t", "rows_estimated": 9}),
             ("copied a table", {"table": "d.t", "rows": 7, "left": 1})],
        ),
        (lambda log: log.complete(), [("all tables are copied", {})]),
    ],
)  # fmt: skip
def test_events(logged: Callable[[ProgressLog], None], events: list[tuple[str, dict[str, Any]]]) -> None:
    found: list[tuple[str, dict[str, Any]]] = []
    logged(ProgressLog(lambda event, **fields: found.append((event, fields))))
    assert found == events
