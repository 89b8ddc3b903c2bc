"""Runs cases (``tests/checks/case.py``) on real servers: each alone with programs of its own, or many through one pair.

With one pair, the statements of all cases run up to their next ``@apply``, then producer and consumer once for all. A
log line belongs to the case whose databases it names; a record, to the case during whose statements it was logged.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pymysql
import toml
from pymysql.connections import Connection

from cdc.model.client_text import client_encode
from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.checks.case import LEADER, Case, Step, as_far_as, following, has, profile_keys, wanted_record
from tests.checks.compare import content, databases, in_lower_case, numbers_given_twice
from tests.harness.programs import as_json, begin_now, run, stopped, write_profile
from tests.harness.topic import LeaderTopic

__all__ = ["CaseRun", "Programs", "run_alone", "run_together"]

_ACTIONS = {"@apply", "@start", "@run", "@record", "@profile"}
_SAID = {"@conflict", "@logged", "@silent", "@stops", "@equal"}
_LOWER_CASE = "--lower-case-table-names=1"
_CLIENT = re.compile(r"SET\s+(?:NAMES|character_set_client\s*=)\s*'?(\w+)", re.I)
_GLOBAL = re.compile(r"SET\s+GLOBAL\s+(\w+)", re.I)
_BYTES = re.compile(r"\{hex ([0-9a-f ]+)\}")
# Options that cannot be combined with --until-current.
_NOT_TO_THE_END = {"--until", "--status", "--copy", "--copy-status", "--dry-run"}
Logs = dict[str, str]  # by program, in the order in which they ran
Place = tuple[str, int]


@dataclass
class CaseRun:
    """One case on two servers, on its way from step to step."""

    case: Case
    leader: MySql
    follower: MySql
    resource: str
    records: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # the values of names in braces
    _spans: list[tuple[Place, Place]] = field(default_factory=list)
    _next: int = 0
    _to_apply: bool = False  # whether something has run since the last @apply
    _stopped: bool = False
    _sessions: dict[tuple[str, str], "Connection[Any]"] = field(default_factory=dict)
    _charsets: dict[tuple[str, str], str] = field(default_factory=dict)  # by session, if it is not utf8mb4
    _at: tuple[str, str] = ("leader", "")
    _former: dict[tuple[str, str], Any] = field(default_factory=dict)  # values of changed global variables before
    _own: set[str] = field(default_factory=set)  # the databases that the case has created on the leader

    def __post_init__(self) -> None:
        self.values["leader"] = self.resource

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions.values():
            session.close()
        for (server, variable), value in self._former.items():
            with getattr(self, server).root() as connection, connection.cursor() as cursor:
                cursor.execute(f"SET GLOBAL {variable} = %s", [value])

    def to_next_action(self) -> Step | None:
        """Runs statements up to the next step for the programs, and returns it; None at the case's end."""
        begin, before = self._place(), databases(self.leader)
        try:
            while self._next < len(self.case.steps):
                step = self.case.steps[self._next]
                self._next += 1
                if step.do in _ACTIONS:
                    self._to_apply = step.do == "@record" or (step.do == "@profile" and self._to_apply)
                    return self._filled(step)
                self._run(self._filled(step))
        finally:
            self._spans.append((begin, self._place()))
            self._own |= set(databases(self.leader)).difference(before)
        if self._to_apply and not self._stopped:
            self._to_apply = False
            return Step("@apply", "", self.case.steps[-1].line)
        return None

    def note_place(self, log: str) -> None:
        """Keeps the place that a stop names after --skip."""
        _, mark, place = log.rpartition("--skip ")
        number = 1 + sum(name.startswith("skip") for name in self.values if name != "skip")
        self.values["skip"] = self.values[f"skip{number}"] = place.split()[0].rstrip(",;") if mark else ""

    def expected(self) -> list[Step]:
        """The steps of the case that describe the next run."""
        return [self._filled(step) for step in following(self.case.steps, self._next, _SAID)]

    def check(self, logs: Logs) -> None:
        """Compares the logs of the programs with the case."""
        said = self.expected()
        self._next += len(said)
        self._stopped = any(step.do == "@stops" for step in said)
        last = list(logs)[-1]
        found = [line for line in conflicts(logs[last]) if self.is_ours(line)]
        wanted = [step.text for step in said if step.do == "@conflict"]
        assert len(found) == len(wanted), f"{self._where()}: {len(wanted)} conflicts expected, found {found}"
        for text in wanted:
            line = next((line for line in found if has(line, text)), None)
            assert line is not None, f"{self._where()}: no conflict with {text!r} in {found}"
            found.remove(line)
        for step in said:
            if step.do in {"@logged", "@silent"}:
                program, _, text = step.text.partition(" ") if step.text.startswith("cdc-") else (last, "", step.text)
                there = has(logs[program], text)
                assert there == (step.do == "@logged"), f"{self._where(step)}: {text!r} and {logs[program]}"
            elif step.do == "@equal":
                self._compare(self._where(step))

    def records_of(self, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records among ``found`` that belong to this case, numbered from 0 on as in a stream of its own."""
        if not self.case.shared:
            return list(found)
        own = [record for record in found if any(a <= _place(record) < b for a, b in self._spans)]
        return [record | {"sequence": number} for number, record in enumerate(own)]

    def check_end(self, found: Callable[[], Iterable[dict[str, Any]]]) -> None:
        """Compares the records, and the follower's content, with the case."""
        given = [self._filled(step) for step in self.case.steps if step.do == "->"]
        compared = self.case.compared and not self._stopped and not self.case.made_by_hand
        # A program that was stopped at its start has created no topic.
        records = self.records_of(found()) if given or compared else []
        if given:
            wanted = [wanted_record(step, self.resource) for step in given]
            assert [as_far_as(*both) for both in zip(wanted, records, strict=True)] == wanted, self.case.name
        if compared:
            self._compare(self.case.name)
            whole = [Record.parse(json.dumps(record).encode(), where=self.case.name) for record in records]
            assert not numbers_given_twice(self.follower, whole), self.case.name

    def _compare(self, where: str) -> None:
        assert self._own, f"{where}: a case makes a database of its own"
        for database in self._own.intersection(databases(self.leader)) - self.case.differing:
            here, there = self._on_follower(database), content(self.leader, database)
            if _LOWER_CASE in self.case.servers.get("follower", []):
                here, there = in_lower_case(here), in_lower_case(there)
            for table in (each for each in there if f"{database}.{each}" in self.case.differing):
                assert here.pop(table, None) != there[table], f"{where}: {table} does not differ"
                there = {name: found for name, found in there.items() if name != table}
            assert here == there, where

    def _place(self) -> Place:
        """The end of the leader's log, which it may lack; a case alone has all records of its topic."""
        return position(self.leader) if self.case.shared else ("", 0)

    def _filled(self, step: Step) -> Step:
        text = step.text
        for name, value in self.values.items():
            text = text.replace(f"{{{name}}}", value)
        return replace(step, text=text)

    def _on_follower(self, database: str) -> dict[str, Any]:
        """The follower's content of a leader's database, under the leader's name."""
        there = self.case.profiles["consumer"].get("renames", {}).get(database, database)
        found: dict[str, Any] = content(self.follower, there)
        return found if there == database else ast.literal_eval(repr(found).replace(there, database))

    def _run(self, step: Step) -> None:
        if step.do == "execute":
            # Statements on the follower are not replicated.
            self._to_apply |= self._at[0] == "leader"
            self._execute(step)
        elif step.do in {"@leader", "@follower"}:
            self._at = step.do[1:], step.text
        else:
            assert step.do == "->", f"{self._where(step)}: {step.do} stands in no place for it"

    def _execute(self, step: Step) -> None:
        said = following(self.case.steps, self._next, {"=", "@both", "@fails", "@as"})
        said = [self._filled(each) for each in said]
        self._next += len(said)
        refusal = [each.text for each in said if each.do == "@fails"]
        rows = [each.text for each in said if each.do == "="]
        try:
            with self._session().cursor() as cursor:
                if self._at[0] not in self.case.servers and (changed := _GLOBAL.match(step.text)):
                    cursor.execute(f"SELECT @@GLOBAL.{changed[1]}")
                    self._former.setdefault((self._at[0], changed[1]), cursor.fetchone()[0])
                cursor.execute(self._encoded(step.text))
                answer = [_shown(row) for row in cursor.fetchall()]
        except pymysql.MySQLError as error:
            assert refusal, f"{self._where(step)}: {error}"
            assert has(str(error), refusal[0]), f"{self._where(step)}: {error}"
        else:
            assert not refusal, f"{self._where(step)}: the server took it"
            if rows:
                assert answer == [json.loads(row) for row in rows if row != "nothing"], self._where(step)
            for each in said:
                if each.do == "@as":
                    self.values |= zip(each.text.split(), map(str, answer[0]), strict=False)
                elif each.do == "@both":
                    with self._session("follower").cursor() as cursor:
                        cursor.execute(self._encoded(step.text))
                        there = [_shown(row) for row in cursor.fetchall()]
                    assert there == answer != [], f"{self._where(step)}: {there}, {answer}"

    def _encoded(self, text: str) -> bytes:
        """The statement in the character set of its session, with the bytes that the case gives in hexadecimal."""
        charset = self._charsets.get(self._at, "utf8mb4")
        if found := _CLIENT.match(text):
            self._charsets[self._at] = found[1].lower()
        parts = enumerate(_BYTES.split(text))
        return b"".join(bytes.fromhex(part) if at % 2 else client_encode(part, charset) for at, part in parts)

    def _session(self, server: str = "") -> "Connection[Any]":
        """The session of the next statement, or the unnamed one of the ``server``."""
        at = (server, "") if server else self._at
        if at not in self._sessions:
            self._sessions[at] = (self.leader if at[0] == "leader" else self.follower).root(charset="utf8mb4")
        return self._sessions[at]

    def is_ours(self, line: str) -> bool:
        """Whether a conflict that the consumer logs is in a database of this case."""
        database = re.search(r" uri=\"?flv://[^/]*/([^/\s\"]*)", line)
        return not self.case.shared or (database is not None and database[1] in self._own)

    def _where(self, step: Step | None = None) -> str:
        line = step.line if step else self.case.steps[min(self._next, len(self.case.steps)) - 1].line
        return f"{self.case.name}:{line}"


def conflicts(log: str) -> list[str]:
    """The lines about conflicts."""
    return [line for line in log.splitlines() if " conflict uri=" in line]


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
        """Writes profiles; ``profiles`` are tables for the ``producer``'s and the ``consumer``'s. The stream begins
        now.
        """
        leader, follower = servers
        producer, consumer = ({**profiles.get(program, {})} for program in ("producer", "consumer"))
        producer["producer"] = {"start": "now"} | producer.get("producer", {})
        source = write_profile(folder, leader, kafka, name="leader", topic=name, resource=name, **producer)
        target = write_profile(folder, follower, kafka, name="follower", topic=name, resource=name, **consumer)
        return cls(name, source, target)

    def apply(self, options: str = "", stops: Iterable[Step] = (), *, producer: bool = True) -> Logs:
        """Runs both programs up to now, or to an expected stop; returns their logs."""
        logs: Logs = {}
        for program, more in (("cdc-producer", ""), ("cdc-consumer", options)):
            if program == "cdc-consumer" or producer:
                logs[program] = self.run(program, more, stops)
            if any(step.text.startswith(f"{program} ") for step in stops):
                break
        return logs

    def run(self, program: str, options: str = "", stops: Iterable[Step] = ()) -> str:
        """Runs one program up to now, or as the options require, or to an expected stop; returns its output."""
        profile = self.source if program == "cdc-producer" else self.target
        own = [step.text.split(" ", 2) for step in stops if step.text.startswith(f"{program} ")]
        arguments = options.split()
        if program != "cdc-tail" and not _NOT_TO_THE_END.intersection(arguments):
            arguments.append("--until-current")
        if not own:
            done = run(program, profile, *arguments)
            assert done.returncode == 0, done.stderr
            return done.stderr + done.stdout
        line, log = stopped(program, profile, *arguments, status=int(own[0][1]))
        for _, _, text in own:
            assert has(line, text), line
        return log

    def change(self, text: str) -> None:
        """Changes a key of a profile for all later runs."""
        for name, table, keys in profile_keys(text):
            path = self.source if name == "producer" else self.target
            content = toml.loads(path.read_text(encoding="utf-8"))
            path.write_text(toml.dumps(content | {table: content.get(table, {}) | keys}), encoding="utf-8")


def run_alone(run: CaseRun, programs: Programs, topic: Callable[[int], LeaderTopic]) -> None:
    """Runs a case from its beginning to its end; ``topic`` writes records that no producer writes, from a
    sequence on.
    """
    made = topic(0) if run.case.steps[0].do == "@record" else None
    if not made and not run.case.has("@start"):
        if next((step.do for step in run.case.steps if step.do in _ACTIONS), "@apply") == "@apply":
            begin_now(programs.source, run.leader)
        else:
            programs.run("cdc-producer")
    while (step := run.to_next_action()) is not None:
        stops = [said for said in run.expected() if said.do == "@stops"]
        if step.do == "@profile":
            programs.change(step.text)
            continue
        if step.do == "@record":
            made = made or _behind_the_producer(programs, topic)
            _send(made, step.text.replace(f"flv://{LEADER}/", f"flv://{run.resource}/"))
            continue
        logs = _run(programs, step, stops, producer=made is None)
        if stops:
            run.note_place(list(logs.values())[-1])
        run.check(logs)
    run.check_end(lambda: () if run.case.made_by_hand else as_json(programs.source))


def _run(programs: Programs, step: Step, stops: list[Step], *, producer: bool) -> Logs:
    if step.do == "@apply":
        return programs.apply(step.text, stops, producer=producer)
    program, _, options = ("cdc-producer" if step.do == "@start" else step.text).partition(" ")
    return {program: programs.run(program, options, stops)}


def _behind_the_producer(programs: Programs, topic: Callable[[int], LeaderTopic]) -> LeaderTopic:
    """The topic, for records behind all that the leader has so far."""
    programs.run("cdc-producer")
    return topic(len(as_json(programs.source)))


def _send(topic: LeaderTopic, text: str) -> None:
    records = json.loads(text)
    bodies = records if isinstance(records, list) else [records]
    if "operation" not in bodies[0]:
        topic.send_raw(*bodies)
        return
    topic.next_sequence = bodies[0].get("sequence", topic.next_sequence)
    topic.send(bodies)


def run_together(runs: list[CaseRun], programs: Programs, failures: dict[str, BaseException]) -> None:
    """Runs cases from beginning to end through one pair; the error of a case is put into ``failures`` by its name."""
    programs.run("cdc-producer")
    waiting, ended = list(runs), ExitStack()
    with ended:
        for run in runs:
            ended.enter_context(run)
        while waiting:
            going = [run for run in waiting if _attempt(run, run.to_next_action, failures) is not None]
            if going:
                logs = programs.apply()
                stray = [line for line in conflicts(logs["cdc-consumer"]) if not any(run.is_ours(line) for run in runs)]
                assert not stray, f"conflicts in databases that no case has made: {stray}"
                for run in going:
                    _attempt(run, partial(run.check, logs), failures)
            waiting = [run for run in going if run.case.name not in failures]
        found = as_json(programs.source)
        for run in runs:
            if run.case.name not in failures:
                _attempt(run, partial(run.check_end, lambda: found), failures)


def _attempt(run: CaseRun, deed: Callable[[], Any], failures: dict[str, BaseException]) -> Any:
    try:
        return deed()
    except (AssertionError, ValueError, pymysql.MySQLError) as error:
        failures[run.case.name] = error
        return None
