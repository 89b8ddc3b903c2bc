"""Runs a steady load, or single writes, on a leader, records when a follower had applied them, and prints lags.

Load and observation run inside the servers, as stored procedures that sleep in between: separate clients used a sixth
of a machine with two cores, for which the measured programs then waited.
"""

import threading
import time
from collections.abc import Sequence

from cdc.sandbox.server.mysql import MySql

__all__ = [
    "CHECKPOINT", "GTIDS", "IDLE_SECONDS", "RATE", "STEADY_SECONDS", "WARM_UP_SECONDS", "percentiles", "seen",
    "single_writes", "steady_load",
]  # fmt: skip

RATE = 1000
WARM_UP_SECONDS = 90  # not counted: the programs have just started, and Kafka's JVM compiles
STEADY_SECONDS, IDLE_SECONDS = 120, 25
_WRITES, _PAUSE_SECONDS = 50, 0.4
_CLIENTS, _ROWS_A_CLIENT = 4, 2000
_LOOK_SECONDS = 0.001
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

_NOW = "UNIX_TIMESTAMP(SYSDATE(6))"
_LOAD = f"""
    CREATE PROCEDURE bench.steady(client INT) BEGIN
        DECLARE started DOUBLE DEFAULT {_NOW};
        DECLARE done INT DEFAULT 0;
        WHILE done < {RATE * STEADY_SECONDS // _CLIENTS} DO
            DO SLEEP(GREATEST(0, started + done * {_CLIENTS / RATE} - {_NOW}));
            UPDATE bench.t SET k = k + 1 WHERE id = client * {_ROWS_A_CLIENT} + done % {_ROWS_A_CLIENT};
            SET done = done + 1;
        END WHILE;
    END
"""
# The follower's progress as a number: the sequence of cdc's last record, or the last GTID's number.
CHECKPOINT = "(SELECT sequence FROM cdc.checkpoint)"
GTIDS = "SUBSTRING_INDEX(@@GLOBAL.gtid_executed, '-', -1)"
_LOOK = f"""
    CREATE PROCEDURE seen.look(seconds INT) BEGIN
        DECLARE started, changed DOUBLE DEFAULT {_NOW};
        DECLARE at, last BIGINT DEFAULT -1;
        WHILE {_NOW} - started < seconds OR {_NOW} - changed < 1 DO
            SET at = %s;
            IF at != last THEN
                SET changed = {_NOW}, last = at;
                INSERT INTO seen.checkpoints VALUES (changed, at);
            END IF;
            DO SLEEP({_LOOK_SECONDS});
        END WHILE;
    END
"""


def steady_load(leader: MySql) -> threading.Thread:
    """Starts ``RATE`` single-row updates a second of bench.t for ``STEADY_SECONDS`` over four connections."""
    _unlogged(leader, "DROP PROCEDURE IF EXISTS bench.steady", _LOAD)
    load = threading.Thread(target=_clients, args=(leader,))
    load.start()
    return load


def single_writes(leader: MySql) -> threading.Thread:
    """Starts single-row updates of bench.t, each after a pause that is long enough for all to be idle again."""
    writes = threading.Thread(target=_single, args=(leader,))
    writes.start()
    return writes


def seen(follower: MySql, applied: str, seconds: int) -> list[tuple[float, int]]:
    """When (seconds since 1970) which number was ``applied``, read about 900 times a second for ``seconds``."""
    made = "CREATE TABLE seen.checkpoints (at DOUBLE, sequence BIGINT) ENGINE = MEMORY"
    _unlogged(follower, "DROP DATABASE IF EXISTS seen", "CREATE DATABASE seen", made, _LOOK % applied,
              f"CALL seen.look({seconds})")  # fmt: skip
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT at, sequence FROM seen.checkpoints ORDER BY at")
        return list(cursor.fetchall())


def percentiles(ages: Sequence[float]) -> str:
    """A line with the percentiles of ``ages``, milliseconds in any order."""
    ages = sorted(ages)
    shown = ", ".join(f"{name} {ages[int(len(ages) * share)]:.1f}" for name, share in _PERCENTILES.items())
    return f"lag in ms, {len(ages)} records: {shown}, max {ages[-1]:.1f}"


def _clients(leader: MySql) -> None:
    clients = [threading.Thread(target=_client, args=(leader, number)) for number in range(_CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


def _client(leader: MySql, number: int) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CALL bench.steady(%s)", (number,))


def _single(leader: MySql) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        for row in range(_WRITES):
            cursor.execute("UPDATE bench.t SET k = k + 1 WHERE id = %s", (row,))
            time.sleep(_PAUSE_SECONDS)


def _unlogged(server: MySql, *statements: str) -> None:
    """Executes statements that are not replicated."""
    with server.root() as connection, connection.cursor() as cursor:
        for statement in ("SET sql_log_bin = 0", *statements):
            cursor.execute(statement)
