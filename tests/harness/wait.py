"""Waits for a condition, with a limit."""

import time
from collections.abc import Callable

from cdc.sandbox.server.mysql import MySql
from tests.harness.warm_start import runs_so_far

LIMIT_SECONDS = 600  # only against hangs: on a busy machine an audit alone takes two minutes
INNODB_TRX_SECONDS = 0.11
_SLEEPS_PER_RUN = 3
_LONGEST_SLEEP = 2.0
_LONGEST_PAUSE = 0.5


def until(condition: Callable[[], object], *, seconds: float = LIMIT_SECONDS, what: str | Callable[[], str]) -> None:
    """Checks the condition until it is true; fails with ``what`` after ``seconds``. As a function, ``what`` gives what
    was seen by then. A check that runs a program, which costs more than what it waits for, is made less often, and so
    is any after a long wait: it comes at most a twentieth of the wait too late.
    """
    start = time.monotonic()
    while True:
        begin, runs = time.monotonic(), runs_so_far()
        if condition():
            return
        end = time.monotonic()
        assert end < start + seconds, f"not within {seconds:.0f} s: {what if isinstance(what, str) else what()}"
        pause = min((end - start) / 20, _LONGEST_PAUSE)
        if runs_so_far() > runs:
            pause = max(pause, min(_SLEEPS_PER_RUN * (end - begin), _LONGEST_SLEEP))
        time.sleep(max(0.05, pause))


def uncommitted_rows(server: MySql, connection_id: int | None = None) -> int:
    """The number of rows that the largest open transaction has changed; with ``connection_id``, that connection's.

    The server refreshes INNODB_TRX only if it was not read for 0.1 s: a client that reads it more often gets the same
    answer for ever (manual: Persistence and Consistency of InnoDB Transaction and Locking Information).
    """
    time.sleep(INNODB_TRX_SECONDS)
    of_one = "" if connection_id is None else f" WHERE trx_mysql_thread_id = {connection_id}"
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COALESCE(MAX(trx_rows_modified), 0) FROM information_schema.innodb_trx{of_one}")
        return int(cursor.fetchall()[0][0])


def waits_for_a_lock(server: MySql) -> bool:
    """Whether a transaction waits for a row that another has locked. INNODB_TRX is slow, as for ``uncommitted_rows``;
    the tests' servers have no performance schema, which shows such waits at once.
    """
    time.sleep(INNODB_TRX_SECONDS)
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
        return bool(cursor.fetchall()[0][0])
