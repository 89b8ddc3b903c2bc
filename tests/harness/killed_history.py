"""A pair whose tables are copied, damaged, copied again and repaired while parts of it are killed and start again."""

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pymysql

from cdc.config.profile import load
from cdc.producer.copy.keys import Keys
from cdc.producer.copy.requests import write_repairs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.generators.copied_load import DAMAGES, CopiedLoad
from tests.harness.pair import Pair
from tests.harness.programs import BIN, run, run_well
from tests.harness.supervised import Supervised

__all__ = ["KilledHistory"]

# Errors after which nothing was damaged: no such database, table or column, locked by the consumer, killed just now, a
# duplicate key.
_NOT_NOW = frozenset({1049, 1054, 1062, 1146, 1205, 1213, 2003, 2006, 2013})


class KilledHistory:
    """Kills the programs, and with ``servers`` also these, at moments of ``seed``; ``done`` counts its acts."""

    def __init__(self, pair: Pair, *, name: str, seed: str, servers: dict[str, MySql | Kafka]) -> None:
        self._pair, self._name, self._seed, self._servers = pair, name, seed, servers
        self._chance = random.Random(seed)
        self._damaged = False
        self.rows = self._chance.choice([2, 7, 30])  # rows in a chunk
        self.done: Counter[str] = Counter()

    def run(self, kills: int, *, rows: int, log: Path) -> None:
        """Kills parts during changes of tables of about ``rows`` rows; changes that are not replicated by its end stay
        so.
        """
        small = [sys.executable, "-m", "tests.altered.small_chunks", str(self.rows), self._pair.source]
        producer = Supervised(small, log.with_suffix(".producer.log"))
        consumer = Supervised([BIN / "cdc-consumer", self._pair.target], log.with_suffix(".consumer.log"))
        victims = self._servers | {"producer": producer, "consumer": consumer}
        load = CopiedLoad(self._pair.leader, database=self._name, seed=self._seed, rows=rows)
        with producer.running(), consumer.running():
            with load:
                for number in range(kills):
                    time.sleep(self._chance.uniform(0.2, 2.0))
                    self._act()
                    time.sleep(self._chance.uniform(0, 1))
                    self._kill(sorted(victims)[number % len(victims)], victims)
                    assert not producer.broken, producer.broken
                    assert not consumer.broken, consumer.broken
            if self._damaged:
                # A table that is renamed while a request waits is not copied, which is logged.
                run_well("cdc-producer", self._pair.source, "--copy", f"{self._name}.*")

    def _kill(self, which: str, victims: dict[str, MySql | Kafka | Supervised]) -> None:
        victim = victims[which]
        victim.kill()
        if isinstance(victim, MySql | Kafka):
            time.sleep(self._chance.choice([0, 0.5]))
            victim.start()
        self.done[f"{which} killed"] += 1

    def _act(self) -> None:
        """Copies, stops a copy, damages or repairs; that may fail while a part is away."""
        act = self._chance.choice(["all", "all", "some", "stop", "damage", "repair"])
        self.done[act] += 1
        if act == "stop":
            run("cdc-producer", self._pair.source, "--copy-stop", f"{self._name}.*")
        if act == "damage":
            self._damage()
        if act == "repair":
            self._repair()
        elif act == "some":
            self._copy(self._chance.choice(["keyed", "*e*", "b*", "named", "child", "away"]))
        else:
            self._copy("*")

    def _copy(self, glob: str) -> None:
        run("cdc-producer", self._pair.source, "--copy", f"{self._name}.{glob}")

    def _damage(self) -> None:
        """Changes rows of the follower without the consumer."""
        self._damaged = True
        for statement in self._chance.sample(DAMAGES, 3):
            try:
                with self._pair.follower.root(database=self._name) as session, session.cursor() as cursor:
                    cursor.execute("SET innodb_lock_wait_timeout = 2, lock_wait_timeout = 2")
                    cursor.execute(statement)
            except pymysql.MySQLError as error:
                assert error.args[0] in _NOT_NOW, error

    def _repair(self) -> None:
        values = dict.fromkeys((f'{{"SignedInteger":{self._chance.randrange(900)}}}',) for _ in range(200))
        keys = [Keys((self._name, table), ("id",), tuple(values)) for table in ("keyed", "child")]
        write_repairs(load(self._pair.source).kafka, self._name, keys)
