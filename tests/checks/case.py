"""Cases: files of SQL with the records that it must become, what the programs log of it, and what the follower holds.

A statement ends with a semicolon at the end of a line and runs on the leader. Other lines are comments, or begin with

===============================  ======================================================================================
``-- -> {…}``                    a record, as far as the case cares: keys that are left out may have any value. A case
                                 that gives one gives all of its records
``-- @leader [SESSION]``         the statements below run on the leader, in the session of that name
``-- @follower [SESSION]``       … on the follower, past the consumer
``-- = […]``                     a row that the last statement must give, as JSON; none is ``-- = nothing``
``-- @fails TEXT``               the server must refuse the last statement, with this text in its error
``-- @both``                     the last statement, on the leader, must give some rows, and the follower the same ones
``-- @as NAME …``                names for the cells of the row that the last statement gives: ``{NAME}`` is one below
``-- @apply [OPTIONS]``          producer and consumer run up to now, the consumer with these options. At the end of
                                 each case they do without being asked
``-- @conflict TEXT``            after ``@apply``: a conflict that the consumer logs. All that it logs must be given
``-- @logged TEXT``              after ``@apply``: what the consumer logs, too; ``-- @silent TEXT``: what it must not.
                                 With a program's name before the text: what that one logs
``-- @equal``                    after ``@apply``: the follower holds now what the leader holds
``-- @start``                    the stream begins here, with the producer's first run, and not before all statements
``-- @stops PROGRAM STATUS TEXT``  after ``@apply`` or ``@run``: one program ends so, with TEXT in its one line
``-- @run PROGRAM OPTIONS``      a program runs up to now, or as ``--until``, ``--status`` or ``--copy`` say; what it
                                 prints is looked for by ``@logged``. ``{skip}`` is what the last stop says after
                                 ``--skip``, and ``{skip1}`` what the first one did
``-- @record {…}``               a transaction in the topic that no producer wrote: this record, or this list of them.
                                 They come after what the leader has so far; its producer does not run any more, nor
                                 at all in a case that begins with one, as it must before ``--skip``. A ``sequence``
                                 may be given, behind a gap; without an ``operation`` it is no record
``-- @profile PROGRAM TABLE.KEY = …``  a key of the profile of ``producer``, ``consumer`` or ``both``, from here on
``-- @server NAME OPTIONS``      a ``leader`` or ``follower`` of the case's own, started with these options
``-- @server NAME 8.0 …``        … of MySQL 8.0; without options the one that all such cases share
``-- @newer NAME REASON``        the case needs a ``leader`` or ``follower`` newer than 8.0
``-- @alone``                    the case changes what other cases may see, such as a global variable. Those are put
                                 back at its end
``-- @differs [NAME …]``         the follower need not hold what the leader holds; with names, of these databases, and
                                 tables (D.T), which must differ. One with spaces stands in double quotes
===============================  ======================================================================================

A TEXT with `` … `` in it is several, of which each comes after the one before. In texts and statements ``{leader}`` is
the leader's name, by which the follower's tables know it. Databases that the consumer's profile renames are compared
with those of the new names.

A statement is sent in the character set that its session has by ``SET NAMES`` or ``SET character_set_client``, and
``{hex e9 ff}`` in it is these bytes, which need not be text.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toml

__all__ = [
    "FOLDER", "LEADER", "Case", "Step", "as_far_as", "cases", "following", "has", "load", "profile_keys",
    "wanted_record",
]  # fmt: skip

FOLDER = Path(__file__).parents[1] / "cases"
LEADER = "mysql-srv1"  # in files; a follower takes a leader's name once, so that each run has a name of its own
_DIRECTIVE = re.compile(r"-- (->|=|@[a-z]+)(?: (.*))?$")
_STEPS = {
    "->", "=", "@both", "@fails", "@as", "@apply", "@conflict", "@logged", "@silent", "@stops", "@run", "@record",
    "@leader", "@follower", "@profile", "@start", "@equal",
}  # fmt: skip
_OF_A_RUN = {"@conflict", "@logged", "@silent", "@stops", "@equal"}
# Directives that need programs of the case's own.
_SINGLE = {"@stops", "@start", "@run", "@record", "@profile"}


@dataclass(frozen=True)
class Step:
    """One thing in a case: ``do`` is a directive, or ``execute`` with the statement as its text."""

    do: str
    text: str
    line: int


@dataclass
class Case:
    """The steps in order, and what the case is run with."""

    name: str
    steps: list[Step] = field(default_factory=list)
    profiles: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {"producer": {}, "consumer": {}})
    servers: dict[str, list[str]] = field(default_factory=dict)  # those of the case's own
    of_80: set[str] = field(default_factory=set)  # servers of MySQL 8.0
    newer: set[str] = field(default_factory=set)  # servers that must not be of MySQL 8.0
    alone: bool = False
    compared: bool = True
    differing: set[str] = field(default_factory=set)  # databases, and tables as D.T, that are not as the leader's

    @property
    def shared(self) -> bool:
        """Whether the case can run through one pair of programs together with others."""
        own = self.alone or self.servers or self.of_80 or any(self.profiles.values())
        single = (step.do in _SINGLE or (step.do == "@apply" and step.text) for step in self.steps)
        return not own and not any(single)

    @property
    def made_by_hand(self) -> bool:
        """Whether the topic is written by the case instead of a producer."""
        return self.has("@record")

    def has(self, do: str) -> bool:
        """Whether one of the steps is this."""
        return any(step.do == do for step in self.steps)


def cases() -> list[Path]:
    """All case files, whose names all differ."""
    found = sorted(FOLDER.glob("**/*.sql"))
    twice = [name for name, times in Counter(path.stem for path in found).items() if times > 1]
    assert not twice, f"two cases are called {twice[0]}"
    return found


def load(path: Path) -> Case:
    """Raises AssertionError, with the line, for what is none of the forms above."""
    case = Case(path.stem)
    statement: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        directive = _DIRECTIVE.match(line)
        if directive:
            assert not statement, f"{path}:{number}: the statement before has no semicolon at the end of a line"
            _direct(case, directive[1], (directive[2] or "").strip(), number, f"{path}:{number}")
        elif line.strip() and not line.startswith("--"):
            statement.append(line)
            if line.endswith(";"):
                case.steps.append(Step("execute", "\n".join(statement)[:-1], number))
                statement = []
    assert not statement, f"{path}: the last statement has no end"
    _require_order(case, path)
    return case


def _direct(case: Case, word: str, text: str, number: int, where: str) -> None:
    if word == "@profile" and not case.steps:
        for name, table, keys in profile_keys(text):
            case.profiles[name].setdefault(table, {}).update(keys)
    elif word in _STEPS:
        case.steps.append(Step(word, text, number))
    elif word == "@server":
        name, *options = shlex.split(text)
        if options[:1] == ["8.0"]:
            case.of_80.add(name)
            options = options[1:]
        if options or name not in case.of_80:
            case.servers[name] = options
    elif word == "@newer":
        name, _, reason = text.partition(" ")
        assert name in {"leader", "follower"} and reason, f"{where}: @newer names a server and the reason"
        case.newer.add(name)
    elif word == "@alone":
        case.alone = True
    else:
        assert word == "@differs", f"{where}: there is no {word}"
        case.differing |= set(shlex.split(text))
        case.compared = case.compared and bool(text)


def profile_keys(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Parse a ``@profile``: a program, a table and its keys, for each program."""
    program, _, key = text.partition(" ")
    programs = ("producer", "consumer") if program == "both" else (program,)
    return [(name, table, keys) for name in programs for table, keys in toml.loads(key).items()]


def _require_order(case: Case, path: Path) -> None:
    """Raise AssertionError for a directive that does not follow the statement or run that it is about."""
    before = ""
    for step in case.steps:
        if step.do in _OF_A_RUN:
            runs = {"@apply", "@run", "@start", *_OF_A_RUN}
            assert before in runs, f"{path}:{step.line}: {step.do} must follow @apply or @run"
        if step.do in {"=", "@both", "@fails", "@as"}:
            assert before in {"execute", "="}, f"{path}:{step.line}: {step.do} must follow a statement"
        if step.do == "execute" and re.match(r"SET\s+(GLOBAL|PERSIST|@@GLOBAL)", step.text, re.I):
            assert case.alone or case.servers, f"{path}:{step.line}: a case that sets a global variable is @alone"
        before = step.do


def following(steps: list[Step], place: int, words: Iterable[str]) -> list[Step]:
    """The steps from ``place`` on for as long as they are of these words."""
    found = []
    while place < len(steps) and steps[place].do in words:
        found.append(steps[place])
        place += 1
    return found


def wanted_record(step: Step, leader: str) -> dict[str, Any]:
    """The record of a ``-- ->``, of the leader ``leader``."""
    record: dict[str, Any] = json.loads(step.text.replace(f"flv://{LEADER}/", f"flv://{leader}/"))
    return record


def has(found: str, text: str) -> bool:
    """Whether ``found`` has the text, or the texts one after the other."""
    at = 0
    for part in text.split(" … "):
        place = found.find(part, at)
        if place < 0:
            return False
        at = place + len(part)
    return True


def as_far_as(wanted: Any, found: Any) -> Any:
    """``found`` reduced to the keys that ``wanted`` has, at every depth of objects."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {key: as_far_as(value, found.get(key)) for key, value in wanted.items()}
    return found
