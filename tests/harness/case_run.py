"""Runs cases (``tests/checks/case.py``) on real servers: each alone with programs of its own, or many through one pair.

In one go the statements of all cases up to their next ``@apply`` run, then producer and consumer once for all. What
they logged belongs to the case in whose databases it was; a record, to the case during whose statements it was logged.
"""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.connections import Connection

from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.checks.case import LEADER, Case, Step, as_far_as, following, has, wanted_record
from tests.checks.compare import content, databases, numbers_given_twice
from tests.harness.programs import as_json, refused, run_well, write_profile
from tests.harness.topic import LeaderTopic

__all__ = ["CaseRun", "Programs", "run_alone", "run_together"]

_ACTIONS = {"@apply", "@run", "@record"}
_SAID = {"@conflict", "@logged", "@silent", "@stops"}
Place = tuple[str, int]


@dataclass
class CaseRun:
    """One case on two servers, on its way from step to step."""

    case: Case
    leader: MySql
    follower: MySql
    resource: str
    records: list[dict[str, Any]] = field(default_factory=list)
    skip: str = ""  # what the last stop said after --skip
    _spans: list[tuple[Place, Place]] = field(default_factory=list)
    _next: int = 0
    _to_apply: bool = False  # whether something has run since the last @apply
    _stopped: bool = False
    _sessions: dict[tuple[str, str], "Connection[Any]"] = field(default_factory=dict)
    _at: tuple[str, str] = ("leader", "")
    _before: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._before = set(databases(self.leader))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions.values():
            session.close()

    def to_next_action(self) -> Step | None:
        """Run statements up to the next thing that is for the programs; None: the case is at its end."""
        begin = position(self.leader)
        try:
            while self._next < len(self.case.steps):
                step = self.case.steps[self._next]
                self._next += 1
                if step.do in _ACTIONS:
                    self._to_apply = step.do == "@record"
                    return step
                self._run(step)
        finally:
            self._spans.append((begin, position(self.leader)))
        if self._to_apply and not self._stopped:
            self._to_apply = False
            return Step("@apply", "", self.case.steps[-1].line)
        return None

    def expected(self) -> list[Step]:
        """What the case says of the run that is next."""
        return following(self.case.steps, self._next, _SAID)

    def check(self, log: str) -> None:
        """Hold what the programs logged against what the case says of it."""
        said = self.expected()
        self._next += len(said)
        self._stopped = any(step.do == "@stops" for step in said)
        found = [line for line in log.splitlines() if " conflict " in line and self._is_ours(line)]
        wanted = [step.text for step in said if step.do == "@conflict"]
        assert len(found) == len(wanted), f"{self._where()}: {len(wanted)} conflicts expected, found {found}"
        for text in wanted:
            line = next((line for line in found if has(line, text)), None)
            assert line is not None, f"{self._where()}: no conflict with {text!r} in {found}"
            found.remove(line)
        for step in said:
            if step.do in {"@logged", "@silent"}:
                assert has(log, step.text) == (step.do == "@logged"), f"{self._where(step)}: {step.text!r} and {log}"

    def records_of(self, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of ``found`` that are of this case, numbered from 0 on as in a stream of its own."""
        own = [record for record in found if any(a <= _place(record) < b for a, b in self._spans)]
        return [record | {"sequence": number} for number, record in enumerate(own)]

    def check_end(self, found: Iterable[dict[str, Any]]) -> None:
        """Hold the records, and what the follower has, against what they must be."""
        wanted = [wanted_record(step, self.resource) for step in self.case.steps if step.do == "->"]
        records = self.records_of(found)
        if wanted:
            assert [as_far_as(*both) for both in zip(wanted, records, strict=True)] == wanted, self.case.name
        created = set(databases(self.leader)) - self._before
        if self.case.compared and not self._stopped and not self.case.made_by_hand:
            assert created, f"{self.case.name}: a case makes a database of its own"
            for database in created:
                assert content(self.follower, database) == content(self.leader, database), self.case.name
            whole = [Record.parse(json.dumps(record).encode(), where=self.case.name) for record in records]
            assert not numbers_given_twice(self.follower, whole), self.case.name

    def _run(self, step: Step) -> None:
        if step.do == "execute":
            # What runs on the follower is not replicated.
            self._to_apply |= self._at[0] == "leader"
            self._execute(step)
        elif step.do in {"@leader", "@follower"}:
            self._at = step.do[1:], step.text
        else:
            assert step.do == "->", f"{self._where(step)}: {step.do} stands in no place for it"

    def _execute(self, step: Step) -> None:
        said = following(self.case.steps, self._next, {"=", "@fails"})
        self._next += len(said)
        refusal = [each.text for each in said if each.do == "@fails"]
        rows = [each.text for each in said if each.do == "="]
        try:
            with self._session().cursor() as cursor:
                cursor.execute(step.text.replace("{leader}", self.resource))
                answer = [_shown(row) for row in cursor.fetchall()]
        except pymysql.MySQLError as error:
            assert refusal, f"{self._where(step)}: {error}"
            assert has(str(error), refusal[0]), f"{self._where(step)}: {error}"
        else:
            assert not refusal, f"{self._where(step)}: the server took it"
            if rows:
                assert answer == [json.loads(row) for row in rows if row != "nothing"], self._where(step)

    def _session(self) -> "Connection[Any]":
        if self._at not in self._sessions:
            server = self.leader if self._at[0] == "leader" else self.follower
            self._sessions[self._at] = server.root(charset="utf8mb4")
        return self._sessions[self._at]

    def _is_ours(self, line: str) -> bool:
        database = re.search(r" uri=\"?flv://[^/]*/([^/\s\"]*)", line)
        return not self.case.shared or (database is not None and database[1] not in self._before)

    def _where(self, step: Step | None = None) -> str:
        line = step.line if step else self.case.steps[min(self._next, len(self.case.steps)) - 1].line
        return f"{self.case.name}:{line}"


def _place(record: dict[str, Any]) -> Place:
    return record["bn_file"]["fileName"], record["bn_file"]["offset"]


def _shown(row: tuple[Any, ...]) -> list[Any]:
    return [cell if cell is None or isinstance(cell, int | float) else _text(cell) for cell in row]


def _text(cell: Any) -> str:
    return cell.hex() if isinstance(cell, bytes) else str(cell)


@dataclass(frozen=True)
class Programs:
    """Producer and consumer with profiles for one run of a case, or of many."""

    resource: str
    source: Path
    target: Path

    @classmethod
    def make(cls, folder: Path, servers: tuple[MySql, MySql], kafka: Kafka, *, name: str, **profiles: Any) -> Self:
        """``profiles`` are tables for the ``producer``'s and the ``consumer``'s. The stream begins now."""
        leader, follower = servers
        producer, consumer = ({**profiles.get(program, {})} for program in ("producer", "consumer"))
        producer["producer"] = {"start": "now"} | producer.get("producer", {})
        source = write_profile(folder, leader, kafka, name="leader", topic=name, resource=name, **producer)
        target = write_profile(folder, follower, kafka, name="follower", topic=name, resource=name, **consumer)
        return cls(name, source, target)

    def apply(self, options: str = "", stops: Iterable[Step] = (), *, producer: bool = True) -> str:
        """Both run up to now, or to a stop that is expected; the consumer's log, or the line of the stop."""
        for program, more in (("cdc-producer", ""), ("cdc-consumer", options)):
            if program == "cdc-producer" and not producer:
                continue
            log = self.run(program, more, stops)
            if any(step.text.startswith(f"{program} ") for step in stops):
                break
        return log

    def run(self, program: str, options: str = "", stops: Iterable[Step] = ()) -> str:
        """One program runs up to now, or to a stop that is expected."""
        profile = self.source if program == "cdc-producer" else self.target
        own = [step.text.split(" ", 2) for step in stops if step.text.startswith(f"{program} ")]
        if not own:
            return run_well(program, profile, "--until-current", *options.split())
        line = refused(program, profile, "--until-current", *options.split(), status=int(own[0][1]))
        for _, _, text in own:
            assert has(line, text), line
        return line


def run_alone(run: CaseRun, programs: Programs, topic: Callable[[], LeaderTopic]) -> None:
    """A case from its beginning to its end; ``topic`` is for what no producer writes."""
    by_hand = run.case.made_by_hand
    if by_hand:
        made = topic()
    else:
        programs.run("cdc-producer")
    while (step := run.to_next_action()) is not None:
        stops = [said for said in run.expected() if said.do == "@stops"]
        if step.do == "@record":
            records = json.loads(step.text.replace(f"flv://{LEADER}/", f"flv://{run.resource}/"))
            made.send(records if isinstance(records, list) else [records])
            continue
        if step.do == "@apply":
            log = programs.apply(step.text, stops, producer=not by_hand)
        else:
            program, _, options = step.text.partition(" ")
            log = programs.run(program, options.replace("{skip}", run.skip), stops)
        if stops:
            run.skip = log.rpartition("--skip ")[2].split()[0] if "--skip " in log else ""
        run.check(log)
    run.check_end(as_json(programs.source))


def run_together(runs: list[CaseRun], programs: Programs, failures: dict[str, BaseException]) -> None:
    """Cases from beginning to end, through one pair; what a case fails with is put into ``failures`` by its name."""
    programs.run("cdc-producer")
    waiting, ended = list(runs), ExitStack()
    with ended:
        for run in runs:
            ended.enter_context(run)
        while waiting:
            going = [run for run in waiting if _attempt(run, run.to_next_action, failures) is not None]
            if going:
                log = programs.apply()
                for run in going:
                    _attempt(run, partial(run.check, log), failures)
            waiting = [run for run in going if run.case.name not in failures]
        found = as_json(programs.source)
        for run in runs:
            if run.case.name not in failures:
                _attempt(run, partial(run.check_end, found), failures)


def _attempt(run: CaseRun, deed: Callable[[], Any], failures: dict[str, BaseException]) -> Any:
    try:
        return deed()
    except (AssertionError, pymysql.MySQLError) as error:
        failures[run.case.name] = error
        return None
