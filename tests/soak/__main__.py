"""Runs a piece of a soak in a folder that keeps its servers; the next piece in the same folder goes on there.

Producer, consumer and capture run while sessions append to lists, DDL is executed each minute and an audit is made each
ten minutes. Everything is judged as it comes; the first fault ends the piece. In the end it prints what was done, and
what memory, open files and delays showed.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from tests.checks.list_append import Transaction
from tests.soak.history import GrowingHistory, Read
from tests.soak.readers import Snapshots, TopicTail, Written
from tests.soak.samples import Samples
from tests.soak.stage import LEADER_TOPIC, Audits, Stage
from tests.soak.workload import DATABASE, PER_WINDOW, Appending, Others, window_of

_READ_WINDOWS, _KEPT_WINDOWS = 3, 20  # lists of the newest windows are read; older ones are finished, then deleted
_SAMPLE_SECONDS = 60
_REST_SECONDS = 300
_WAITING = 100_000  # more than so many transactions that wait for another source are a fault
_START = {"pieces": 0, "minutes": 0.0, "number": 0, "offset": 0, "sequence": 0, "ddl": 0, "audits": 0, "right": 0,
          "transactions": 0, "operations": 0, "reads": 0}  # fmt: skip


class Piece:
    """The threads of a piece, and the history that judges what they find."""

    def __init__(self, stage: Stage, state: dict[str, Any], given: argparse.Namespace) -> None:
        self.stage = stage
        # A new piece begins with lists of its own.
        self._first = window_of(state["number"]) + window_of(PER_WINDOW)
        self.numbers = itertools.count(max(1, (state["number"] // PER_WINDOW + 1) * PER_WINDOW))
        self.newest = 0
        self.history = GrowingHistory()
        self._confirmed: SimpleQueue[Transaction] = SimpleQueue()
        self._written: SimpleQueue[Written] = SimpleQueue()
        self._reads: SimpleQueue[Read] = SimpleQueue()
        clock, rate = itertools.count(), given.rate / given.sessions
        self.writers = [
            Appending(
                stage.leader,
                rate=rate,
                large_every=given.large_every,
                numbers=self.numbers,
                clock=clock,
                confirmed=self._confirmed,
            )
            for _ in range(given.sessions)
        ]
        self.others = Others(stage.leader, ddl_seconds=given.ddl_seconds, first=state["pieces"] * 100_000)
        place = {"offset": state["offset"], "sequence": state["sequence"]}
        self.tail = TopicTail(stage.kafka.bootstrap_servers, LEADER_TOPIC, **place, found=self._written)
        self.snapshots = Snapshots(stage.follower, first=self._read_from, found=self._reads)
        self.audits = Audits(stage, seconds=given.audit_seconds, first=state["audits"])

    @property
    def threads(self) -> list[Any]:
        return [*self.writers, self.others, self.tail, self.snapshots, self.audits]

    @property
    def faults(self) -> list[str]:
        """Everything that should not be, so far."""
        failed = [f"{type(each).__name__}: {each.failure!r}" for each in self.threads if each.failure]
        waiting = self.history.unsettled() if self.history.waiting > _WAITING else []
        return [
            *self.history.faults,
            *self.tail.faults,
            *self.audits.faults,
            *self.stage.ended(),
            *failed,
            *waiting[:5],
        ]

    def merge(self) -> None:
        """Hands everything that the threads have found to the history."""
        for each in _all_of(self._confirmed):
            self.newest = max(self.newest, each.appends[-1][1])
            self.history.confirm(each)
        for appends, texts in _all_of(self._written):
            self.history.add(appends, texts)
        for read in _all_of(self._reads):
            self.history.read(read)

    def finish_lists(self) -> None:
        """Compares the lists that are finished with both servers, and deletes them on the leader."""
        below = window_of(self.newest - _KEPT_WINDOWS * PER_WINDOW)
        if below <= self._first:
            return
        for server in (self.stage.leader, self.stage.follower):
            with server.root(database=DATABASE) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT k, v FROM lists WHERE k < {below}")
                for key, text in cursor.fetchall():
                    if text != " ".join(map(str, self.history.numbers(key))):
                        self.history.faults.append(f"list {key} of server {server.server_id} is another: {text[-60:]}")
        with self.stage.leader.root(database=DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM lists WHERE k < {below}")
        self._first = below
        self.history.drop(below)

    def rest(self) -> list[str]:
        """Ends the workload, waits until everything has arrived, and returns what has not."""
        for each in (*self.writers, self.others, self.audits):
            each.stop.set()
            each.join()
        end = time.monotonic() + _REST_SECONDS
        while time.monotonic() < end and not self.faults:
            self.merge()
            if not self.history.unsettled() and self._lists(self.stage.leader) == self._lists(self.stage.follower):
                break
            time.sleep(0.5)
        self.snapshots.stop.set()
        self.snapshots.join()
        self.merge()
        same = self._lists(self.stage.leader) == self._lists(self.stage.follower)
        return [*self.history.unsettled(), *([] if same else ["the lists of leader and follower differ in the end"])]

    def _read_from(self) -> int:
        return max(self._first, window_of(max(0, self.newest - _READ_WINDOWS * PER_WINDOW)))

    def _lists(self, server: Any) -> Any:
        with server.root(database=DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT k, v FROM lists ORDER BY k")
            return cursor.fetchall()


def _all_of(queue: "SimpleQueue[Any]") -> Iterator[Any]:
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return


def main() -> int:
    given = _parsed()
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "soak.json"
    state = _START | (json.loads(file.read_text()) if file.exists() else {})
    with Stage(folder, transactions=not given.without_transactions) as stage:
        stage.write_profiles()
        _begin(stage, state)
        with _started(Piece(stage, state, given)) as piece:
            samples = Samples(folder / "samples.csv", metrics_port=stage.metrics_port)
            _work(piece, samples, minutes=given.minutes)
            # After a fault not all was read to its end, so what is unsettled then means nothing.
            faults = piece.faults or [*piece.rest(), *piece.faults]
        stage.end_programs()
    state = _after(state, piece, samples)
    file.write_text(json.dumps(state))
    _print(piece, samples, state, settle=given.settle_minutes)
    for fault in faults[:20]:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=200, help="transactions a second")
    parser.add_argument("--large-every", type=int, default=10, help="one of so many transactions has forty appends")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--ddl-seconds", type=float, default=60)
    parser.add_argument("--audit-seconds", type=float, default=600)
    parser.add_argument(
        "--settle-minutes",
        type=float,
        default=60,
        help="memory is judged from then on, and from half of a shorter piece on",
    )
    parser.add_argument("--without-transactions", action="store_true", help="kafka.transactions = false")
    return parser.parse_args()


def _begin(stage: Stage, state: dict[str, Any]) -> None:
    """Makes the tables and the topics at the first piece; at a later one, empties the lists of the one before."""
    if not state["pieces"]:
        stage.run_to_the_end("source", "capture")
    Others.create_tables(stage.leader)
    with stage.leader.root(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM lists")
    stage.run_to_the_end("source", "target", "capture")


@contextmanager
def _started(piece: Piece) -> Iterator[Piece]:
    piece.stage.start_programs()
    for each in piece.threads:
        each.start()
    try:
        yield piece
    finally:
        for each in piece.threads:
            each.stop.set()
        for each in piece.threads:
            each.join()


def _work(piece: Piece, samples: Samples, *, minutes: float) -> None:
    """Judges what the threads find until ``minutes`` are over, or a fault is found."""
    due = 0.0
    while samples.minutes < minutes and not piece.faults:
        piece.merge()
        if samples.minutes * 60 >= due:
            due += _SAMPLE_SECONDS
            piece.finish_lists()
            samples.take(piece.stage.processes)
        time.sleep(0.2)


def _after(state: dict[str, Any], piece: Piece, samples: Samples) -> dict[str, Any]:
    """The state with which the next piece begins, and the sums of all pieces."""
    added = {
        "pieces": 1, "minutes": samples.minutes, "ddl": piece.others.statements, "right": piece.audits.right,
        "transactions": piece.history.transactions, "operations": piece.history.operations,
        "reads": piece.history.judged,
    }  # fmt: skip
    places = {"number": next(piece.numbers), "offset": piece.tail.offset, "sequence": piece.tail.sequence,
              "audits": piece.audits.number}  # fmt: skip
    return {**{key: state[key] + value for key, value in added.items()}, **places}


def _print(piece: Piece, samples: Samples, state: dict[str, Any], *, settle: float) -> None:
    print(
        f"this piece: {samples.minutes:.0f} min, {piece.history.transactions:,} transactions, "
        f"{piece.history.operations:,} operations, {piece.history.judged:,} reads, {piece.others.statements} DDL"
    )
    print(
        f"all {state['pieces']} pieces: {state['minutes']:.0f} min, {state['transactions']:,} transactions, "
        f"{state['operations']:,} operations, {state['reads']:,} reads, {state['ddl']} DDL, "
        f"{state['right']} of {state['audits']} audits right"
    )
    for line in samples.lines(settle_minutes=min(settle, samples.minutes / 2)):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
