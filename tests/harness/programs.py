"""Runs the programs as users do: profiles in files, real processes, their output and their end."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import toml

from cdc.kafka import partitions
from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.leaked_secrets import note_secrets, require_no_secret
from tests.harness.wait import LIMIT_SECONDS
from tests.harness.warm_start import PROGRAMS, WarmProcess, run_warm

BIN = Path(sys.executable).parent
RETRY_SECONDS = 600  # a server may take so long to start again on a busy machine, in tests of something else


def own_name(folder: Path) -> str:
    """A name for topics and databases that no other test has, for a test's ``tmp_path``, whichever worker runs it."""
    return f"{folder.parent.name}_{folder.name}".replace("-", "_")


def write_profile(
    folder: Path,
    server: MySql,
    broker: Kafka,
    *,
    name: str,
    resource: str = "",
    topic: str = "",
    **tables: Any,
) -> Path:
    """A profile for ``server``; ``tables`` are merged over its tables, such as ``filters={"include_dbs": ["a"]}``.

    By default the topic is called ``name``, and the leader has the topic's name: a follower accepts a leader's name
    once.
    """
    content: dict[str, Any] = {
        "mysql_resource_name": resource or topic or name,
        "database": {"port": server.port, "user": USER, "password": PASSWORD},
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "topic": topic or name},
        "producer": {"retry_seconds": RETRY_SECONDS},
        "consumer": {"retry_seconds": RETRY_SECONDS},
    }
    for table, keys in tables.items():
        content[table] = content.get(table, {}) | keys
    note_secrets(content)
    path = folder / f"{name}.toml"
    path.write_text(toml.dumps(content))
    return path


def after_now(leader: MySql) -> str:
    """A value of producer.start with which a stream begins now, whenever the producer first runs: the GTIDs executed so
    far. It is "now", at the first run, if there are none.
    """
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT IF(@@GLOBAL.gtid_mode = 'ON', @@GLOBAL.gtid_executed, '')")
        return str(cursor.fetchone()[0]).replace("\n", "") or "now"


def schema_rights(follower: MySql, pattern: str) -> dict[str, dict[str, str]]:
    """A user who has rights on databases only; returns the tables of a consumer's profile with that user.

    ``pattern`` is that of the databases, in backquotes where it is no plain name.
    """
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER IF NOT EXISTS cdc_writer IDENTIFIED BY 'writer'")
        for database in ("cdc", pattern):
            cursor.execute(f"GRANT ALL ON {database}.* TO cdc_writer")
        cursor.execute("GRANT REPLICATION SLAVE ON *.* TO cdc_writer")
    return {"database": {"user": "cdc_writer", "password": "writer"}, "consumer": {"privileges": "schema"}}


def change_profile(path: Path, **tables: dict[str, Any]) -> None:
    """Merges ``tables`` over those of a profile."""
    content = toml.loads(path.read_text(encoding="utf-8"))
    for table, keys in tables.items():
        content[table] = content.get(table, {}) | keys
    path.write_text(toml.dumps(content), encoding="utf-8")


def begin_now(profile: Path, leader: MySql) -> None:
    """Has the stream of a producer's profile, which starts now, begin now: by a first run only if ``leader`` has no
    GTIDs, else by these. Nothing is in Kafka before the producer's next run.
    """
    own = toml.loads(profile.read_text(encoding="utf-8"))["producer"]["start"]
    if own != "now" or (start := after_now(leader)) == "now":
        run_well("cdc-producer", profile, "--until-current")
    else:
        change_profile(profile, producer={"start": start})


def run(program: str, *arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs one of our programs to its end; with ``env``, which a program's start may depend on, the installed one."""
    if env is None and program in PROGRAMS:
        done = run_warm(program, *map(str, arguments), seconds=LIMIT_SECONDS)
    else:
        done = subprocess.run(
            [BIN / program, *arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS, env=env, check=False
        )
    require_no_secret(f"{done.stdout}{done.stderr}", where=f"the output of {program}")
    return done


def run_well(program: str, *arguments: str | Path) -> str:
    """Runs one of our programs, which must end with exit status 0; returns its log."""
    done = run(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(program: str, *arguments: str | Path, status: int = 2, env: dict[str, str] | None = None) -> str:
    """Runs one of our programs, which must end with ``status`` and one line with the reason; returns that line."""
    return stopped(program, *arguments, status=status, env=env)[0]


def stopped(program: str, *arguments: str | Path, status: int, env: dict[str, str] | None = None) -> tuple[str, str]:
    """Does the same as ``refused``; returns the whole log, too."""
    done = run(program, *arguments, env=env)
    assert done.returncode == status, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0], done.stderr


@contextmanager
def running(program: str, *arguments: str | Path, stderr: Any = subprocess.PIPE) -> Iterator["subprocess.Popen[str]"]:
    """One of our programs in the background; SIGTERM must end it well, unless it was killed meanwhile."""
    descriptor = stderr if isinstance(stderr, int) else stderr.fileno()
    with WarmProcess(program, *map(str, arguments), stderr=descriptor) as process:
        try:
            yield cast("subprocess.Popen[str]", process)
        finally:
            alive = process.poll() is None
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)  # a test that failed may have left it stopped
            errors = _ended(process)
        if alive:
            assert process.returncode == 0, errors


def _ended(process: WarmProcess) -> str | None:
    """Waits for the end of a process; returns what it has written since to its standard error. Raises AssertionError
    with that, and the stacks of its threads, if it does not end."""
    try:
        errors = process.communicate(timeout=LIMIT_SECONDS)[1]
        require_no_secret(errors or "", where=f"the output of {process.args}")
        return errors
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"{process.args} did not end: {process.communicate(timeout=LIMIT_SECONDS)[1]}")


def records(profile: Path) -> list[Record]:
    """All records of the profile's topic."""
    return [Record.parse(line.encode(), where="cdc-tail") for line in json_lines(profile)]


def json_lines(profile: Path) -> list[str]:
    """All records of the profile's topic as JSON text."""
    done = run("cdc-tail", profile, "-B", "--json")
    assert done.returncode == 0, done.stderr
    # Not splitlines, which also ends a line at characters that JSON text may contain, such as U+2028.
    return done.stdout.split("\n")[:-1]


def as_json(profile: Path) -> list[dict[str, Any]]:
    """All records of the profile's topic as JSON."""
    return [json.loads(line) for line in json_lines(profile)]


def end_offset(kafka: Kafka, topic: str) -> int:
    """The offset after the topic's newest message."""
    return partitions.end_offsets({"bootstrap.servers": kafka.bootstrap_servers}, [(topic, 0)])[topic, 0]
