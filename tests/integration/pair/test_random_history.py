"""Random statements between random rows: the records, folded, are the leader's tables, and the follower's are equal."""

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.model.position import Position
from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.checks.compare import content, in_lower_case, numbers_given_twice
from tests.checks.folded import Fold, Rows, shown
from tests.generators.random_history import Deed, RandomHistory
from tests.generators.random_tables import LAX
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import begin_now, records, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.server_pool import know_vectors

pytestmark = pytest.mark.integration

DEEDS = int(os.environ.get("CDC_RANDOM_DEEDS", "80"))
A_ROUND = 300  # deeds that share a database and a run of the programs
_LOWER_CASE = "--lower-case-table-names=1"
_NAMES = re.compile(r"(?<=[`.])(?:t[0-2]|a b|Group|таблица|v[01])(?=`)")
Alike = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Moment:
    """The leader's tables when its binlog ended at ``position``."""

    position: Position
    tables: dict[str, Rows]


@dataclass
class Done:
    """What became of deeds: moments in order, how many statements were taken and refused, and what was looked at."""

    moments: list[Moment] = field(default_factory=list)
    statements: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    rows: int = 0
    compared: int = 0


def test_random_history(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = []
    for number, first in enumerate(range(0, DEEDS, A_ROUND)):
        name = f"history_{number}"
        topics = {"layout": "per_table", "prefix": f"{name}."} if number % 2 else {}
        shared = {"resource": name, "topic": name, "kafka": topics}
        source = write_profile(tmp_path, leader, kafka, name=name, producer={"start": "now"}, **shared)
        target = write_profile(tmp_path, follower, kafka, name=f"{name}-target", **shared)
        begin_now(source, leader)
        with (tmp_path / f"{name}.sql").open("w") as log:
            deeds = min(A_ROUND, DEEDS - first)
            rounds.append(run_deeds(leader, name, random.Random(f"{SEED} {number}"), deeds=deeds, log=log))
        check(rounds[-1], source, target, leader, follower)
        for server in (leader, follower):
            with server.root() as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
    statements = sum((done.statements for done in rounds), Counter[str]())
    rows, refused = sum(done.rows for done in rounds), sum(done.refused for done in rounds)
    assert refused < statements.total() // 2, f"CDC_SEED={SEED}: {statements}"
    with capsys.disabled():
        print(f"\n{DEEDS} random deeds: {rows} rows changed, {statements.total()} statements taken, {refused} refused")
        print(f"{dict(statements.most_common())}")
        print(f"{sum(done.compared for done in rounds)} tables compared, all equal (CDC_SEED={SEED})")


def in_random_case(chance: random.Random) -> Callable[[str], str]:
    """Writes each name of a table or view anew, in upper and lower case as it comes."""
    return lambda text: _NAMES.sub(lambda name: "".join(chance.choice((c.upper(), c.lower())) for c in name[0]), text)


@pytest.mark.parametrize("leader_folds", [in_long_runs(True), False], ids=["both_servers", "the_follower"])
def test_random_history_where_names_are_in_lower_case(
    tmp_path: Path, leader: MySql, kafka: Kafka, mysql_server: MySqlFactory, leader_folds: bool
) -> None:
    """A leader that has all names in lower case takes them in any; of one that has not, each name has one spelling.

    In `make test` test_cases has a leader that does (cases/names/both_in_lower_case.sql).
    """
    follower = mysql_server(_LOWER_CASE, server_id=42)
    leader = mysql_server(_LOWER_CASE, server_id=41) if leader_folds else leader
    chance = random.Random(f"{SEED} names")
    spelled = in_random_case(chance) if leader_folds else lambda text: _NAMES.sub(lambda name: name[0].title(), text)
    name = f"Names_{'both' if leader_folds else 'here'}"
    shared = {"resource": name, "topic": name, "filters": {"include_dbs": [name]}}
    source = write_profile(tmp_path, leader, kafka, name=name, producer={"start": "now"}, **shared)
    target = write_profile(tmp_path, follower, kafka, name=f"{name}-target", **shared)
    begin_now(source, leader)
    with (tmp_path / "names.sql").open("w") as log:
        done = run_deeds(leader, name, chance, deeds=DEEDS // 2, log=log, spelled=spelled)
    check(done, source, target, leader, follower, alike=in_lower_case)
    assert done.compared > DEEDS // 4, f"CDC_SEED={SEED}"
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


def check(done: Done, source: Path, target: Path, leader: MySql, follower: MySql, alike: Alike = dict) -> None:
    """The round's records are what the leader showed, and the follower's tables are the leader's, both as ``alike``
    shows them.
    """
    which, name = f"CDC_SEED={SEED}, {source.stem}", source.stem
    run_well("cdc-producer", source, "--until-current")
    found = records(source)
    compare(found, done.moments, which)
    logged = run_well("cdc-consumer", target, "--until-current")
    assert "conflicts=0" in logged, f"{which}: {logged}"
    here, there = alike(content(leader, name)), alike(content(follower, name))
    assert here.keys() == there.keys(), which
    for each in here:
        assert there[each] == here[each], f"{which}, {each}"
    assert not numbers_given_twice(follower, found), which
    done.rows = sum(len(record.rows) for record in found)
    done.compared = len(here) + sum(len(moment.tables) for moment in done.moments)


def run_deeds(
    leader: MySql, database: str, chance: random.Random, *, deeds: int, log: Any, spelled: Callable[[str], str] = str
) -> Done:
    """Random deeds on the leader. What the server refuses is part of them: it leaves nothing in the log."""
    done = Done()
    history = RandomHistory(chance, vectors=know_vectors())
    with leader.root(charset="utf8mb4") as session, leader.root(charset="utf8mb4") as watch:
        cursor, watcher = session.cursor(), watch.cursor()
        watcher.execute(LAX)
        for statement in (LAX, f"CREATE DATABASE {database}", f"USE {database}"):
            cursor.execute(statement)
        for _ in range(deeds):
            deed = history.next()
            deed = replace(deed, statements=[*map(spelled, deed.statements)])
            if deed.ddl:
                done.moments.append(Moment(Position(*position(leader)), shown(watcher, database)))
            if taken(cursor, deed, done, log):
                history.tables = deed.tables
            if deed.ddl:
                done.moments.append(Moment(Position(*position(leader)), shown(watcher, database)))
        done.moments.append(Moment(Position(*position(leader)), shown(watcher, database)))
    return done


def taken(cursor: Any, deed: Deed, done: Done, log: Any) -> bool:
    """Whether the server took the deed's last statement."""
    well = False
    for statement in deed.statements:
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as error:
            well = False
            done.refused += 1
            log.write(f"{statement};\n-- {error}\n")
        else:
            well = True
            done.statements[statement.split()[0]] += 1
            log.write(f"{statement};\n")
    return well


def compare(found: list[Record], moments: list[Moment], which: str) -> None:
    """At each moment the records before it are what the leader showed; what ALTER made of them is taken from there."""
    fold, waiting = Fold(), iter(found)
    record = next(waiting, None)
    for moment in moments:
        while record is not None and record.position < moment.position:
            fold.take(record)
            record = next(waiting, None)
        assert fold.tables.keys() == moment.tables.keys(), f"{which}, {moment.position}"
        for table, rows in moment.tables.items():
            if table not in fold.altered:
                only_told, only_shown = fold.tables[table] - rows, rows - fold.tables[table]
                assert not only_told | only_shown, f"{which}, {table} at {moment.position}: {only_told}, {only_shown}"
            assert fold.tables[table].total() == rows.total(), f"{which}, {table} at {moment.position}"
            fold.tables[table] = Counter(rows)
        fold.altered.clear()
    assert record is None, f"{which}: records after the end"
