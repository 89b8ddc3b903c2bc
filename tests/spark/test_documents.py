"""The commands in the documents, run in one sandbox as a reader would run them, page after page.

How each block is run is in ``tests.checks.document_commands``. Programs that start a Spark run in this process with the
one that all tests share; what their own start does is tested by ``test_cdc_audit`` and ``test_killed_lake``.
"""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cdc.sandbox.server.process import free_port
from cdc.sandbox.servers import ProfileFiles
from tests.checks.document_commands import ALL, LINES, MAKE, ROOT, Block
from tests.harness.keeper import jvm
from tests.spark.conftest import RunInSpark

pytestmark = [pytest.mark.spark, pytest.mark.integration]

BIN = Path(sys.executable).parent
LIMIT_SECONDS = 600  # only against hangs
IN_SPARK = ("cdc-audit", "cdc-lake", "cdc-seed", "spark-submit")
ENDLESS = re.compile(r"cdc-(producer|consumer) \w+\.toml")
METRICS_PORTS = ("9464", "9465")  # in the documents: of a producer or consumer, and of the audit


class Printed(io.StringIO):
    """What a program prints. This process gets SIGTERM, as the program would, when it prints what is ``awaited``."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited = awaited

    def write(self, text: str) -> int:
        if self.awaited and self.awaited in text:
            signal.raise_signal(signal.SIGTERM)
        return super().write(text)


@dataclass
class Reader:
    """Somebody who types the commands: a home folder, a working folder, and the programs that are left running."""

    home: Path
    run_in_spark: RunInSpark
    ports: dict[str, str] = field(default_factory=lambda: {port: str(free_port()) for port in METRICS_PORTS})
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.home / "cdc"
        self.folder.mkdir()
        (self.folder / "cdc").symlink_to(ROOT / "cdc")
        self.state = self.home / ".local/state/cdc-sandbox"
        self.environment = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"} | {
            "HOME": str(self.home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "CDC_CACHE": os.environ.get("CDC_CACHE", str(Path.home() / ".cache/cdc")),
            # A broker that lives for a minute uses half the CPU time of one with both compilers.
            "JDK_JAVA_OPTIONS": " ".join(jvm()),
        }

    def read(self, block: Block) -> None:
        """Run a block's commands. Raises AssertionError where one ends in another way than the page says."""
        if beside := re.match("run: beside (.+)", block.comment):
            self.start(beside[1])
        for command in block.commands:
            command = re.sub("|".join(METRICS_PORTS), lambda port: self.ports[port[0]], command)
            if MAKE.fullmatch(command):
                continue
            if url := re.fullmatch(r"curl (http://\S+)", command):
                self.get(url[1], where=f"{block}: {command}")
            elif ENDLESS.fullmatch(command):
                self.start(command)
            elif command.startswith(IN_SPARK):
                self.run_in_process(command, block)
            elif prints := re.match("run: until it prints (.+)", block.comment):
                self.start(command, until_it_prints=prints[1])
                self.stop()  # another block may start the same program, which listens on the same port
            else:
                self.run(command, status=block.status, where=f"{block}: {command}")
        if beside:
            self.stop()

    def run_in_process(self, command: str, block: Block) -> None:
        """Run a program that needs Spark, over what the others have written by then. One that goes on for ever gets a
        signal when it has printed what the page says."""
        self.catch_up()
        prints = re.match("run: until it prints (.+)", block.comment)
        output = Printed(prints[1] if prints else "")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
            status = self.run_in_spark(command)
        assert status == block.status, f"{block}: {command}: exit status {status}\n{output.getvalue()}"
        assert output.awaited in output.getvalue()

    def run(self, command: str, *, status: int, where: str) -> None:
        reads = "SELECT" in command  # which has nothing to read until the row has come
        give_up = time.monotonic() + LIMIT_SECONDS
        while True:
            done = self._shell(command)
            if done.returncode == status or not reads or time.monotonic() > give_up:
                break
            time.sleep(0.2)
        assert done.returncode == status, f"{where}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        if command == "cdc-sandbox up":
            self.take_profiles()

    def take_profiles(self) -> None:
        """Those of the sandbox's ports stand for the repository's."""
        mine, theirs = ProfileFiles.below(self.folder), ProfileFiles.below(self.state)
        for path in (theirs.producer, theirs.consumer, theirs.follower):
            shutil.copy(path, self.folder)
        with mine.producer.open("a") as file:
            file.write(f"[metrics]\nport = {self.ports[METRICS_PORTS[0]]}\n")

    def catch_up(self) -> None:
        """Stop the programs, and let each come to the end of what the one before it wrote."""
        self.stop()
        for command in ("cdc-producer producer", "cdc-consumer consumer", "cdc-producer follower"):
            line = f"{command}_profile.toml --until-current"
            self.run(line, status=0, where=line)

    def start(self, command: str, *, until_it_prints: str = "") -> None:
        if command in self.running:
            return
        log = self.home / f"{len(list(self.home.glob('*.log')))}.log"
        with log.open("wb") as file:
            process = self.running[command] = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment, stdout=file, stderr=file
            )
        give_up = time.monotonic() + LIMIT_SECONDS
        while until_it_prints not in log.read_text():
            assert process.poll() is None and time.monotonic() < give_up, f"{command}: {log.read_text()}"
            time.sleep(0.2)

    def get(self, url: str, *, where: str) -> None:
        give_up = time.monotonic() + LIMIT_SECONDS
        while True:
            with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=10) as answer:
                assert answer.read()
                return
            assert time.monotonic() < give_up, where
            time.sleep(0.2)

    def stop(self) -> None:
        """End what runs in the background; all of it must have run until now, and end well."""
        try:
            for command, process in self.running.items():
                assert process.poll() is None, f"{command}: exit status {process.returncode}"
                process.send_signal(signal.SIGTERM)
                assert process.wait(LIMIT_SECONDS) == 0, command
        finally:
            for process in self.running.values():
                process.kill()
            self.running.clear()

    def _shell(self, command: str) -> "subprocess.CompletedProcess[str]":
        if command == "cdc-sandbox up":
            command += " --leader-port 0 --follower-port 0 --kafka-port 0"
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip


@pytest.fixture
def reader(run_in_spark: RunInSpark) -> Iterator[Reader]:
    # Not below pytest's folder: the path of a MySQL socket is short.
    with tempfile.TemporaryDirectory(prefix="cdc-docs-") as home:
        one = Reader(Path(home), run_in_spark)
        try:
            yield one
        finally:
            for process in one.running.values():
                process.kill()
            one._shell("cdc-sandbox down --wipe")


def test_every_command_does_what_its_page_says(reader: Reader) -> None:
    runs = [block for block in ALL if block.runs]
    [last] = [block for block in runs if any(command.startswith("cdc-sandbox down") for command in block.commands)]
    runs.remove(last)
    for block, before in zip(runs, [runs[0], *runs], strict=False):
        if block.page != before.page:
            reader.stop()
        reader.read(block)
    reader.stop()
    reader.read(last)


@pytest.mark.long
def test_every_line_to_try_ends_well(reader: Reader) -> None:
    """In `make test` test_every_command_does_what_its_page_says runs the blocks, and unit tests parse these lines."""
    page = ROOT / "docs/try-it.md"
    for block in [each for each in ALL if each.page == page and each.runs][:-1]:
        reader.read(block)
    reader.stop()
    for line in LINES:
        prints = "http://" if line.startswith("cdc-web ") else "Puffball" if line.endswith(" -f") else ""
        reader.read(Block(page, 0, prints and f"run: until it prints {prints}", [line]))
        if line.startswith(("cdc-tail ", "python ")) and not prints:
            assert reader._shell(line).stdout, line
