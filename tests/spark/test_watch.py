"""cdc-audit --watch: a line and metrics for each verdict, while the topics grow and something goes wrong in between."""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import IO

import pytest

from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port
from cdc.spark.job.launch import Runtime, archive_folder, known_jars, package_names
from cdc.spark.job.watch import Verdicts, watch, watched
from cdc.spark.report.files import ASIDE
from cdc.spark.report.outcome import Audit, Topic
from tests.generators.streams import CommitLog, GrowingTopic, Stream, Table, tutorial
from tests.harness.outside import health, scrape
from tests.harness.programs import BIN, own_name, run
from tests.harness.wait import LIMIT_SECONDS, until
from tests.spark.conftest import RunInSpark
from tests.spark.test_cdc_audit import QUICK, environment, profiles

pytestmark = pytest.mark.spark

PET = Table("flvDb/pet", ["name", "owner", "birth", "last_vaccine"])


def lines(output: IO[str], wanted: str) -> Iterator[str]:
    """The lines up to and with the one that has ``wanted`` in it."""
    for line in output:
        yield line
        if wanted in line:
            return
    raise AssertionError(f"the program ended without {wanted!r}")


def growing(kafka: Kafka, folder: Path, streams: Sequence[Stream]) -> list[GrowingTopic]:
    """Topics of this test's own with both streams as they are now."""
    topics = [GrowingTopic(kafka.bootstrap_servers, f"{own_name(folder)}-{side}") for side in ("leader", "follower")]
    for topic, stream in zip(topics, streams, strict=True):
        topic.grow(stream.messages, len(stream.messages))
    return topics


def open_to_others(*folders: Path) -> list[str]:
    """What is in these folders, they included, that others than their owner may read or search.

    A program may be at work there: what goes meanwhile is left out.
    """
    found = []
    inside = (Path(at, name) for each in folders for at, inner, files in os.walk(each) for name in (*inner, *files))
    for path in [*folders, *inside]:
        with suppress(FileNotFoundError):
            if (mode := path.stat().st_mode) & 0o077:
                found.append(f"{path} {mode:o}")
    return found


def options_of(kafka: Kafka, folder: Path, *watch: str) -> list[str]:
    """The program's options for the topics that ``growing`` makes, with its files in ``folder``."""
    options = profiles(
        folder, kafka.bootstrap_servers, leader=f"{own_name(folder)}-leader", follower=f"{own_name(folder)}-follower"
    )
    return [*options, "--report", str(folder / "report"), "--state", str(folder / "state"), *watch]


def watching(kafka: Kafka, folder: Path, *watch: str, **changes: str) -> "subprocess.Popen[str]":
    """The program on the topics that ``growing`` makes, with its files in ``folder`` and a process group of its own,
    and with ``changes`` of the environment, of which an empty one takes the variable away."""
    quick = f"{QUICK} -Dspark.sql.codegen.wholeStage=false"
    settings = environment(SPARK_SUBMIT_OPTS=quick, SPARK_LOCAL_DIRS=str(folder / "spilled"), **changes)
    return subprocess.Popen(
        [BIN / "cdc-audit", *options_of(kafka, folder, *watch)],
        env={name: value for name, value in settings.items() if changes.get(name) != ""},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0, umask=0,
    )  # fmt: skip


class User(threading.Thread):
    """Does ``deeds`` while the program runs in the main thread, which then gets SIGINT, as a terminal sends it."""

    def __init__(self, deeds: Callable[[], None]) -> None:
        super().__init__(name="user", daemon=True)
        self._deeds = deeds
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._deeds()
        except BaseException as error:  # noqa: BLE001 - raised where the test is
            self._error = error
        os.kill(os.getpid(), signal.SIGINT)

    def require_done(self) -> None:
        self.join(LIMIT_SECONDS)
        if self._error is not None:
            raise self._error


def test_the_verdict_follows_the_topics(
    kafka: Kafka, tmp_path: Path, run_in_spark: RunInSpark, capsys: pytest.CaptureFixture[str]
) -> None:
    leader, follower = tutorial()
    topics, port = growing(kafka, tmp_path, (leader, follower)), free_port()
    logs = [CommitLog(kafka.bootstrap_servers, f"{own_name(tmp_path)}-{side}", resource=resource)
            for side, resource in (("leader", "mysql-srv1"), ("follower", "mysql-srv1-follower"))]  # fmt: skip
    logs[0].write(9)
    logs[1].write(13, age_seconds=2 * 86_400)
    ends = os.pipe()
    with os.fdopen(ends[0]) as said, os.fdopen(ends[1], "w") as output, redirect_stdout(output):

        def deeds() -> None:
            # The follower's capture is dead for two days: the topic says nothing of what was done there since.
            dead = list(lines(said, "could not judge"))[-1]
            old = re.search(r"the commit log of the follower's topic (\S+) is (\d+) s old, and --max-age is 3600", dead)
            assert old is not None, dead
            assert (old[1], int(old[2]) > 86_400) == (f"{own_name(tmp_path)}-follower", True)
            until(lambda: scrape(port).get("cdc_audit_exit_status") == 2, what="the verdict in /metrics")
            assert scrape(port)["cdc_audit_topic_age_seconds"] >= 86_400
            assert health(port)[0] == 503
            told = json.loads((tmp_path / "report/report.json").read_text())
            assert (told["exit_status"], told["behind_records"], told["behind_seconds"]) == (2, 0, 0)
            assert told["ages_seconds"]["leader"] < 3_600 < 86_400 <= told["ages_seconds"]["follower"]
            logs[1].write(13)
            assert "no drift at sequence 8 (0 rows drifted" in list(lines(said, "no drift at"))[-1]
            until(lambda: scrape(port).get("cdc_audit_exit_status") == 0, what="the verdict in /metrics")
            assert scrape(port)["cdc_audit_sequence"] == 8
            assert health(port)[0] == 200
            follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
            topics[1].grow(follower.messages, len(follower.messages))
            assert "1 rows drifted, 1 foreign writes" in list(lines(said, " drift at sequence 8 (1"))[-1]
            until(lambda: scrape(port).get("cdc_audit_exit_status") == 1, what="the drift in /metrics")
            found = scrape(port)
            assert (found["cdc_audit_drifted_rows"], found["cdc_audit_foreign_writes"]) == (1, 1)
            assert {"cdc_audit_lag_seconds", "cdc_audit_age_seconds", "cdc_audit_duration_seconds"} <= found.keys()
            assert list((tmp_path / "report/drift.parquet").glob("*.parquet"))
            # A signal in the midst of a round, which is then cancelled.
            until((tmp_path / "report" / ASIDE).exists, what="another round")

        user = User(deeds)
        user.start()
        options = options_of(kafka, tmp_path, "--watch", "3", "--metrics", str(port), "--max-age", "3600")
        status = run_in_spark(shlex.join(["cdc-audit", *options]))
        user.require_done()
    # What offsets and profiles tell is logged before Spark starts, here of the capture that is dead then.
    warned = capsys.readouterr().err.splitlines()
    assert (status, len(warned)) == (1, 1), warned
    assert "warning cannot judge" in warned[0] and "s old, and --max-age is 3600" in warned[0]


def jvm_below(pid: int) -> int:
    """The JVM among a process's descendants (proc(5))."""
    processes = [pid]
    for each in processes:
        if Path(f"/proc/{each}/comm").read_text() == "java\n":
            return each
        processes += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
    raise AssertionError(f"no JVM below {pid}")


@pytest.mark.long
@pytest.mark.parametrize("stopped", [False, True])
def test_the_watch_ends_with_its_jvm(kafka: Kafka, tmp_path: Path, stopped: bool) -> None:
    """And what holds rows is its owner's alone, whatever the umask, and whoever made the folder; and the connector,
    which nobody has named, is fetched without a word at the first run, and known from then on. `make test` has
    test_the_verdict_follows_the_topics."""
    leader, follower = tutorial()
    follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    growing(kafka, tmp_path, (leader, follower))
    fetched = {"CDC_SPARK_JARS": "", "CDC_CACHE": str(tmp_path / "cache")}
    process = watching(kafka, tmp_path, "--watch", "600" if stopped else "1", **fetched)
    assert process.stdout is not None
    try:
        list(lines(process.stdout, " drift at sequence 8 (1"))
        names = package_names({}, Runtime.of(os.environ).home)
        assert known_jars({}, archive_folder(fetched) / "connector.json", names)
        folders = [tmp_path / name for name in ("report", "state", "spilled")]
        assert list(folders[0].glob("drift.parquet/*.parquet")) and list(folders[1].glob("*/rows/*.parquet"))
        if not stopped:
            until(lambda: any(folders[2].glob("blockmgr-*/*/*")), what="a file that Spark spilled")
        assert open_to_others(*folders[:2], *folders[2].glob("blockmgr-*")) == []
        # As the kernel does where memory runs out.
        os.kill(jvm_below(process.pid), signal.SIGKILL)
        if stopped:
            os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    if stopped:
        # It was told to stop before it asked anything of Spark again, so the verdict stands.
        assert (process.returncode, errors) == (1, "")
    else:
        assert process.returncode == 2, errors
        assert errors.startswith("cdc-audit: [CDC-SPARK-ENDED] Spark's JVM has ended; hint: start cdc-audit again")
        assert errors.count("\n") == 1


def test_ctrl_c_ends_an_audit_and_its_jvm_without_a_traceback(kafka: Kafka, tmp_path: Path) -> None:
    growing(kafka, tmp_path, tutorial())
    process = watching(kafka, tmp_path)
    try:
        until(lambda: (tmp_path / "report" / ASIDE).exists() or process.poll() is not None, what="the audit")
        jvm = jvm_below(process.pid)
        # As a terminal does: all of the group hear it, to which the JVM does not belong.
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    assert (process.returncode, output, errors) == (-signal.SIGINT, "", "")
    until(lambda: not Path(f"/proc/{jvm}").exists(), what="the end of the JVM")


@pytest.mark.parametrize(
    "options",
    [
        ["--watch", "5"],
        ["--watch", "0", "--state", "s"],
        ["--metrics", "9464"],
        ["--watch", "1", "--state", "s", "--metrics", "x"],
    ],
)
def test_options_that_do_not_go_together(options: list[str]) -> None:
    done = run("cdc-audit", "--leader", "l.toml", "--follower", "f.toml", "--report", "r", *options)
    assert done.returncode == 2
    assert "--watch" in done.stderr.splitlines()[-1]


def an_audit(**fields: object) -> Audit:
    topic = Topic("r", "t", 0, None, None, None, None, {})
    return Audit("2026-01-01T00:00:00+00:00", topic, topic, **fields)  # type: ignore[arg-type]


class Stopping:
    """An event that is set after so many waits."""

    def __init__(self, waits: int) -> None:
        self._left = waits

    def is_set(self) -> bool:
        return self._left <= 0

    def wait(self, timeout: float) -> bool:
        self._left -= 1
        return self.is_set()


def test_an_audit_that_fails_later_is_no_verdict_and_the_next_one_may_judge(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: list[Audit | Exception] = [an_audit(sequence=3), UserError("no broker"), ValueError("no such job")]

    def audit() -> Audit:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    verdicts = Verdicts(1.0)
    assert watch(audit, verdicts, stop=Stopping(3)) == 2  # type: ignore[arg-type]
    told = capsys.readouterr().out.splitlines()
    assert "no drift at sequence 3" in told[0]
    assert told[1].endswith("could not judge: no broker")
    assert "could not judge: Spark failed: ValueError('no such job')" in told[2]
    assert verdicts.counts == {0: 1, 1: 0, 2: 2}
    assert not all(check.ok for check in verdicts.checks())


def test_the_first_failure_is_the_users_to_mend() -> None:
    def audit() -> Audit:
        raise UserError("no such topic")

    with pytest.raises(UserError, match="no such topic"):
        watch(audit, Verdicts(1.0), stop=Stopping(3))  # type: ignore[arg-type]


def test_each_job_of_a_round_is_cancelled_after_a_signal() -> None:
    jobs = [threading.Event() for _ in range(3)]
    running: list[threading.Event] = []

    def audit() -> Audit:
        signal.raise_signal(signal.SIGTERM)
        for job in jobs:
            running.append(job)
            assert job.wait(LIMIT_SECONDS), "nobody cancelled the job"
        raise UserError("cancelled")

    def cancel() -> None:
        if running:
            running[-1].set()

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert watched(audit, interval=1.0, listen=None, info={}, cancel=cancel) == 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert all(job.is_set() for job in jobs)
