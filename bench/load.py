"""A steady load on a leader from a process of its own, and what is said of lags."""

import multiprocessing
import threading
import time
from collections.abc import Sequence

import pymysql

from cdc.sandbox.mysql import PASSWORD, USER

__all__ = ["RATE", "WARM_UP_SECONDS", "percentiles", "steady_load"]

RATE = 1000
WARM_UP_SECONDS = 90  # of the load, which are not counted: all programs have just started
_SECONDS, _CLIENTS, _ROWS_A_CLIENT = 120, 4, 2000
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def steady_load(port: int) -> multiprocessing.Process:
    """Starts ``RATE`` single-row updates a second of bench.t for 40 s from four connections."""
    load = multiprocessing.Process(target=_clients, args=(port,))
    load.start()
    return load


def percentiles(ages: Sequence[float]) -> str:
    """Ages in milliseconds, in any order."""
    ages = sorted(ages)
    shown = ", ".join(f"{name} {ages[int(len(ages) * share)]:.1f}" for name, share in _PERCENTILES.items())
    return f"lag in ms at {RATE} transactions/s, {len(ages)} records: {shown}, max {ages[-1]:.1f}"


def _clients(port: int) -> None:
    clients = [threading.Thread(target=_client, args=(port, number)) for number in range(_CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


def _client(port: int, number: int) -> None:
    connection = pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True)
    begun = time.monotonic()
    with connection, connection.cursor() as cursor:
        for count in range(RATE * _SECONDS // _CLIENTS):
            time.sleep(max(0.0, begun + count * _CLIENTS / RATE - time.monotonic()))
            row = number * _ROWS_A_CLIENT + count % _ROWS_A_CLIENT
            cursor.execute("UPDATE bench.t SET k = k + 1 WHERE id = %s", (row,))
