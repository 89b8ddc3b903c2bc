"""cdc-seed: a follower made of the topics alone is as the leader was, and cdc-consumer and cdc-audit go on with it."""

import os
import random
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.consumer.follower.session import Session
from cdc.errors import UserError
from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.fetch.mysql_programs import mysql_programs_80
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.seed.pipeline import Loaded, run
from cdc.service.retry import Retry
from cdc.spark.input.small_data import set_tiny
from tests.checks.compare import content, databases, numbers_given_twice
from tests.checks.folded import shown
from tests.generators.random_tables import LAX
from tests.harness.long_runs import LONG
from tests.harness.pair import Pair
from tests.harness.programs import BIN, begin_now, records, refused, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory, started
from tests.harness.wait import LIMIT_SECONDS, until
from tests.integration.pair.test_random_history import Moment, run_deeds
from tests.integration.pair.test_types import DURABLE_ENOUGH, NOT_TRANSACTIONAL
from tests.integration.pair.test_types import load as load_types
from tests.spark.test_cdc_audit import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.integration]

KILLS = int(os.environ.get("CDC_SEED_KILLS", "1"))
DEEDS = int(os.environ.get("CDC_SEEDED_DEEDS", "40"))
A_ROUND = 40  # deeds in one database

HISTORY = (
    "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) UNIQUE, price DECIMAL(10, 2), day DATE)",
    "INSERT INTO orders VALUES (1, 'a', 1.5, '2026-01-01'), (2, 'é\"\\\\', NULL, '2026-01-02'), (3, 'c', -2, NULL)",
    "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
    "INSERT INTO orders VALUES (1, 'again', 7, NULL)", "UPDATE orders SET price = price + 1 WHERE id = 2",
    # Numbers of rows that are gone are not given again.
    "INSERT INTO orders VALUES (90, 'gone', 7, NULL)", "DELETE FROM orders WHERE id = 90",
    "ALTER TABLE orders ADD COLUMN note VARCHAR(30) DEFAULT (CONCAT('made ', 'so')), MODIFY price DECIMAL(12, 1)",
    "INSERT INTO orders (id, name) VALUES (5, 'e')",
    "CREATE TABLE parts (id INT, at INT, order_id INT, twice INT AS (at * 2) STORED, PRIMARY KEY (id, at))",
    "INSERT INTO parts (id, at, order_id) VALUES (1, 1, 1), (1, 2, 2), (2, 1, 4)",
    "ALTER TABLE parts ADD FOREIGN KEY (order_id) REFERENCES orders (id)",
    "UPDATE orders SET name = 'parent, later' WHERE id = 4",
    "CREATE TABLE bare (n INT, t TEXT)",
    "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL)", "DELETE FROM bare WHERE n = 1 LIMIT 1",
    "CREATE TABLE emptied (n INT PRIMARY KEY)", "INSERT INTO emptied VALUES (1)", "TRUNCATE TABLE emptied",
    "INSERT INTO emptied VALUES (2)", "RENAME TABLE emptied TO filled", "CREATE TABLE never (n INT PRIMARY KEY)",
    "CREATE TABLE dropped (n INT PRIMARY KEY)", "INSERT INTO dropped VALUES (1)", "DROP TABLE dropped",
    "CREATE TABLE first (n INT PRIMARY KEY)", "INSERT INTO first VALUES (1), (2)",
    "CREATE TABLE second (t TEXT)", "INSERT INTO second VALUES ('x'), ('x')",
    "RENAME TABLE first TO aside, second TO first, aside TO second", "INSERT INTO first VALUES ('x')",
    "DELETE FROM second WHERE n = 1",
    "CREATE TABLE again (id INT PRIMARY KEY, n INT)", "INSERT INTO again VALUES (1, 5), (2, 5)", "DROP TABLE again",
    "CREATE TABLE again (id INT, n INT PRIMARY KEY)", "INSERT INTO again VALUES (1, 5), (1, 6)",
    "CREATE TABLE nullable (n INT UNIQUE, b INT)", "INSERT INTO nullable VALUES (NULL, 1), (NULL, 1), (3, 1)",
    "DELETE FROM nullable WHERE b = 1 AND n IS NULL LIMIT 1",
    "CREATE TABLE lists (n INT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 3",
    "INSERT INTO lists VALUES (1), (9)",
    "ALTER TABLE lists COALESCE PARTITION 2",
    "CREATE TABLE selected (PRIMARY KEY (n)) SELECT n FROM bare WHERE t IS NULL",
    "CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, n INT)", "INSERT INTO numbered VALUES (1, 1), (77, 2)",
    "UPDATE numbered SET n = 3 WHERE id = 77", "DELETE FROM numbered WHERE id = 77",
    # The highest numbers of two columns in one record, in a row that is left and in one that is gone.
    "CREATE TABLE both_highest (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    "INSERT INTO both_highest VALUES (1, 100), (2, 1)", "DELETE FROM both_highest WHERE id = 2",
    # A row that had the highest number, and is left without it.
    "CREATE TABLE lower (k INT PRIMARY KEY, id INT AUTO_INCREMENT UNIQUE)",
    "INSERT INTO lower VALUES (1, 90), (2, 3)", "UPDATE lower SET id = 5 WHERE k = 1",
    "CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 2",
    "CREATE PROCEDURE nothing() SELECT 1",
)  # fmt: skip


@pytest.fixture(scope="module")
def new_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A follower that the tests of this module share, each of which finds it empty."""
    with started(tmp_path_factory.mktemp("seeded"), server_id=7) as server:
        yield server


@pytest.fixture
def empty(new_server: MySql, spark: SparkSession) -> MySql:
    with new_server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        for name in [*databases(new_server), "cdc"]:
            cursor.execute("DROP DATABASE IF EXISTS `{}`".format(name.replace("`", "``")))
    set_tiny(spark, records=0)
    return new_server


@pytest.fixture
def pair(
    tmp_path: Path, servers: tuple[MySql, MySql], empty: MySql, kafka: Kafka, request: pytest.FixtureRequest
) -> Pair:
    name = request.node.originalname[5:45]
    filters = {"include_dbs": [name]}
    return Pair.make(
        tmp_path, servers[0], empty, kafka, name=name, source={"filters": filters},
        capture={"filters": {"include_dbs": [name, "cdc"]}, "producer": {"start": "now"}},
    )  # fmt: skip


def seed(source: Path, target: Path, spark: SparkSession, *, at: int | str | None = None) -> Loaded | None:
    """cdc-seed, in this process and on the session that the tests share."""
    stop = threading.Event()
    retry = Retry(seconds=30, log=lambda *_, **__: None, stop=stop)
    return run(lambda: spark, load(source), load(target), at=at, retry=retry, stop=stop)


def test_a_follower_of_the_topics_alone(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    """Then the consumer goes on, and the audit finds no drift and nothing foreign."""
    database = "a_follower_of_the_topics_alone"
    run_well("cdc-producer", pair.capture, "--until-current")
    pair.on_leader(f"CREATE DATABASE {database}", f"USE {database}", *HISTORY)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", f"{database}.filled")
    loaded = seed(pair.source, pair.target, spark)
    assert loaded is not None
    assert content(pair.follower, database) == content(pair.leader, database)
    newest = [each.sequence for each in records(pair.source) if each.of_copy][-1]
    with pair.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT sequence FROM cdc.chunks")
        assert cursor.fetchall() == ((newest,),), "the consumer compares it with the topic"
    assert not numbers_given_twice(pair.follower, records(pair.source))
    with pytest.raises(UserError, match=r"the follower has applied records of .* before"):
        seed(pair.source, pair.target, spark)
    pair.on_leader(
        "INSERT INTO orders (name) VALUES ('next')", "UPDATE orders SET price = 0", "DELETE FROM bare LIMIT 1",
        "ALTER TABLE bare ADD COLUMN more INT", "INSERT INTO parts (id, at, order_id) VALUES (7, 7, 5)",
        database=database,
    )  # fmt: skip
    assert "conflicts=0" in pair.replicate()
    assert content(pair.follower, database) == content(pair.leader, database)
    audit = pair.audit(spark, tmp_path / "report", consumer=True)
    assert (audit.verdict, audit.reasons, audit.foreign_writes) == ("no drift", [], 0)


def test_a_follower_of_mysql_80(
    tmp_path: Path, servers: tuple[MySql, MySql], mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession
) -> None:
    """Whose parser of JSON takes some doubles for others; in long runs with all that the first test has."""
    name = "a_follower_of_mysql_80"
    pair = Pair.make(
        tmp_path, servers[0], mysql_server(server_id=8, find=mysql_programs_80), kafka, name=name,
        source={"filters": {"include_dbs": [name]}},
    )  # fmt: skip
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", *(HISTORY if LONG else HISTORY[:2]),
        "CREATE TABLE documents (id INT PRIMARY KEY, j JSON)",
        "INSERT INTO documents WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
        "SELECT i, JSON_ARRAY(RAND(i), JSON_OBJECT('a', -RAND(i) * POW(10, i), 'b', 'x')) FROM n",
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    assert seed(pair.source, pair.target, spark) is not None
    assert content(pair.follower, name) == content(pair.leader, name)


def test_a_follower_killed_while_it_is_loaded(
    pair: Pair, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it dies, the consumer refuses the follower, and the next run goes on."""
    database, chance = "a_follower_killed_while_it_is_loaded", random.Random(SEED)
    pair.on_leader(f"CREATE DATABASE {database}", f"USE {database}", *HISTORY)
    run_well("cdc-producer", pair.source, "--until-current")
    logged = records(pair.source)
    at, kills = logged[len(logged) * 2 // 3], 0
    while True:
        loaded, more = seeded_with_kills(pair, spark, monkeypatch, chance, at=at.transaction)
        kills += more
        if kills >= KILLS:
            break
        emptied(pair.follower, database)
    assert loaded is not None
    assert loaded.sequence == max(each.sequence for each in logged if each.transaction == at.transaction)
    with capsys.disabled():
        print(f"\n{kills} kills (CDC_SEED={SEED})")
    pair.on_leader("UPDATE orders SET price = 0", database=database)
    assert "conflicts=0" in pair.replicate()
    assert content(pair.follower, database) == content(pair.leader, database)


def seeded_with_kills(
    pair: Pair, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, chance: random.Random, *, at: str
) -> tuple[Loaded | None, int]:
    """What was loaded when it was not killed any more, and how often it was."""
    kills = 0
    while True:
        with monkeypatch.context() as patched:
            dying = Dying(chance.randrange(1, 60 if kills < KILLS else 10_000), after=chance.random() < 0.5)
            patched.setattr(Session, "send", dying.send(Session.send))
            try:
                return seed(pair.source, pair.target, spark, at=at), kills
            except Killed:
                kills += 1
        if seed_in_follower(pair):
            assert "cdc-seed has not ended" in refused("cdc-consumer", pair.target, "--until-current")


def emptied(server: MySql, database: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in (f"DROP DATABASE {database}", "DROP DATABASE cdc", "RESET BINARY LOGS AND GTIDS"):
            cursor.execute(statement)


@pytest.mark.long
def test_a_follower_of_a_program_that_is_killed(pair: Pair, spark: SparkSession) -> None:
    """Ctrl-C is one line that says how to go on; kills of the program and its Spark come after it. `make test` has
    test_a_follower_killed_while_it_is_loaded."""
    database, chance = "a_follower_of_a_program_that_is_killed", random.Random(f"{SEED} program")
    pair.on_leader(f"CREATE DATABASE {database}", f"USE {database}", *HISTORY)
    run_well("cdc-producer", pair.source, "--until-current")
    status, errors = signalled(pair, signal.SIGINT)
    assert status == 2, errors
    told = [line for line in errors.splitlines() if " info " not in line]
    stopped = "stopped before the follower was fully loaded; hint: run cdc-seed again; it continues"
    assert told == [f"cdc-seed: [CDC-SEED-STOPPED] {stopped}"], errors
    assert "cdc-seed has not ended" in refused("cdc-consumer", pair.target, "--until-current")
    kills = (signalled(pair, signal.SIGKILL, seconds=chance.random() * 12)[0] for _ in range(KILLS // 5))
    if 0 not in kills:
        assert seed(pair.source, pair.target, spark) is not None
    assert content(pair.follower, database) == content(pair.leader, database), f"CDC_SEED={SEED}"


def signalled(pair: Pair, number: int, *, seconds: float | None = None) -> tuple[int, str]:
    """The exit status and standard error of cdc-seed, which got a signal with its Spark, as Ctrl-C sends it: after
    ``seconds``, or else when it had begun with the follower."""
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    process = subprocess.Popen(
        [BIN / "cdc-seed", "--leader", pair.source, "--follower", pair.target], start_new_session=True, text=True,
        env=dict(os.environ) | {"CDC_SPARK_JARS": jars, "SPARK_SUBMIT_OPTS": QUICK},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    if seconds is None:
        until(lambda: process.poll() is not None or seed_in_follower(pair), what="cdc-seed begins with the follower")
    else:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    if process.poll() is None:
        os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    return process.returncode, errors


class Killed(BaseException):
    """Not an error that anything handles."""


class Dying:
    """Every session dies at packet ``number``, before it is sent or ``after``."""

    def __init__(self, number: int, *, after: bool) -> None:
        self._left = number
        self._after = after

    def send(self, real: Callable[..., None]) -> Callable[..., None]:
        def send(session: Session, *arguments: Any) -> None:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                raise Killed
            real(session, *arguments)
            if self._left == 0:
                raise Killed

        return send


def seed_in_follower(pair: Pair) -> bool:
    with pair.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'cdc' AND table_name = 'seeds'"
        )
        if cursor.fetchone() == (0,):
            return False
        cursor.execute("SELECT count(*) FROM cdc.seeds")
        return bool(cursor.fetchone() == (1,))


def test_a_follower_that_is_not_empty(pair: Pair, spark: SparkSession) -> None:
    pair.on_leader("CREATE DATABASE a_follower_that_is_not_empty")
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_follower("CREATE DATABASE theirs")
    with pytest.raises(UserError, match="the follower is not empty: it has the databases theirs"):
        seed(pair.source, pair.target, spark)
    assert "cdc" not in databases(pair.follower)


@pytest.mark.long
def test_all_types(tmp_path: Path, mysql_server: MySqlFactory, empty: MySql, kafka: Kafka, spark: SparkSession) -> None:
    """Each table of all_types.sql is as on the leader, cell by cell, or refused by name. In `make test` the tables of
    test_random_histories are of random types."""
    leader = mysql_server(*DURABLE_ENOUGH, server_id=3)
    load_types(leader)
    source = write_profile(tmp_path, leader, kafka, name="seeded-types")
    leave_out = {"filters": {"exclude_tables": [*NOT_TRANSACTIONAL, "cdc_types.t_json"]}}
    target = write_profile(tmp_path, empty, kafka, name="seeded-types-target", topic="seeded-types", **leave_out)
    run_well("cdc-producer", source, "--until-current")
    assert seed(source, target, spark) is not None
    assert databases(empty) == databases(leader)
    for database in databases(leader):
        here, there = content(leader, database), content(empty, database)
        for table in ("t_myisam", "t_memory", "t_json"):
            here.pop(table, None)
        assert here.keys() == there.keys()
        for each in here:
            assert there[each] == here[each], (database, each)


def test_random_histories(
    tmp_path: Path, mysql_server: MySqlFactory, empty: MySql, kafka: Kafka, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The law: a follower seeded as of a moment is as the leader was then, or refused by name; and the consumer goes
    on from there."""
    leader, found = mysql_server(server_id=1), Counter[str]()
    for number, first in enumerate(range(0, DEEDS, A_ROUND)):
        name, chance = f"seeded_history_{number}", random.Random(f"{SEED} seeded {number}")
        layout = {"layout": "per_table", "prefix": f"{name}."} if chance.random() < 0.5 else {}
        shared = {"resource": name, "topic": name, "kafka": layout}
        filters = {"filters": {"include_dbs": [name]}}
        source = write_profile(tmp_path, leader, kafka, name=name, producer={"start": "now"}, **filters, **shared)
        target = write_profile(tmp_path, empty, kafka, name=f"{name}-target", **shared)
        begin_now(source, leader)
        with (tmp_path / f"{name}.sql").open("w") as log:
            done = run_deeds(leader, name, chance, deeds=min(A_ROUND, DEEDS - first), log=log)
        run_well("cdc-producer", source, "--until-current")
        found += seeded(source, target, spark, empty, done.moments, chance)
        if found["here"]:
            run_well("cdc-consumer", target, "--until-current")
            here, there = content(leader, name), content(empty, name)
            assert here.keys() == there.keys(), (SEED, name)
            for each in here:
                assert there[each] == here[each], (SEED, name, each)
            assert not numbers_given_twice(empty, records(source)), (SEED, name)
        del found["here"]
        with empty.root() as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS cdc")
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
    with capsys.disabled():
        print(f"\n{dict(found)} (CDC_SEED={SEED})")


def seeded(
    source: Path, target: Path, spark: SparkSession, follower: MySql, moments: list[Moment], chance: random.Random
) -> Counter[str]:
    """Seed as of a random moment, or of an earlier one where that is refused."""
    found, logged = Counter[str](), records(source)
    for moment in chance.sample(moments[len(moments) // 3 :], len(moments) * 2 // 3)[:6]:
        sequence = max((each.sequence for each in logged if each.position < moment.position), default=-1)
        if sequence < 0:
            continue
        try:
            loaded = seed(source, target, spark, at=sequence)
        except UserError as error:
            found["refused"] += 1
            found[re.sub(r"\d+|`.*?`", "…", error.what)[:90]] += 1
            assert error.hint, error
            assert not databases(follower), (SEED, error)
            continue
        assert loaded is not None
        with follower.root(charset="utf8mb4") as session, session.cursor() as cursor:
            cursor.execute(LAX)
            there = shown(cursor, source.stem)
        assert there == moment.tables, (SEED, source.stem, sequence)
        found += Counter({"equal": 1, "here": 1, "rows": loaded.rows})
        break
    return found
