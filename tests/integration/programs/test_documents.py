"""The commands in the documents, run in one sandbox as a reader would run them, page after page.

Each block ```sh is run, unless a comment before it says why not: `<!-- not run: needs Docker -->`. Others say how:

    <!-- run: exit status 2, … -->       each command must end with that status, not with 0
    <!-- run: until it prints TEXT -->   then it goes on in the background until the page's end
    <!-- run: beside COMMAND -->         COMMAND runs in the background until the block's end

A program that never ends by itself (`cdc-producer PROFILE`) runs until the page's end without such a comment.
"""

import contextlib
import os
import re
import shlex
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

from cdc.sandbox.profiles import ProfileFiles
from cdc.sandbox.programs import spark_jars
from cdc.sandbox.server.ports import free_port

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
LIMIT_SECONDS = 180
# First what starts the sandbox; its last block, which stops it, comes after all other pages.
PAGES = [ROOT / "docs/try-it.md", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = ("cdc-producer", "cdc-consumer", "cdc-audit", "cdc-tail", "cdc-sandbox")
ENDLESS = re.compile(r"cdc-(producer|consumer) \w+\.toml")
MAKE = re.compile(r"make (\w[\w-]*)( && \. \.venv/bin/activate)?")
METRICS_PORTS = ("9464", "9465")  # in the documents: of a producer or consumer, and of the audit


@dataclass(frozen=True)
class Block:
    """The commands of one block, and what the comment before it says, such as ``run: exit status 2``."""

    page: Path
    line: int
    comment: str
    commands: list[str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return not self.comment.startswith("not run: ")

    @property
    def status(self) -> int:
        wanted = re.match(r"run: exit status (\d)", self.comment)
        return int(wanted[1]) if wanted else 0


def blocks(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines):
        if line in ("```sh", "```console", "```bash"):
            body = "\n".join(lines[number + 1 : lines.index("```", number)]).replace("\\\n", " ")
            comment = re.fullmatch("<!-- (.+) -->", lines[number - 1])
            commands = [" ".join(shlex.split(each, comments=True)) and each.strip() for each in body.splitlines()]
            commands = [re.sub(r"\s+#\s.*", "", each) for each in commands if each]
            found.append(Block(page, number + 1, comment[1] if comment else "", commands))
    return found


ALL = [block for page in dict.fromkeys(PAGES) for block in blocks(page)]


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    known = ("run: exit status ", "run: until it prints ", "run: beside ", "not run: ")
    assert not block.comment or block.comment.startswith(known)
    assert block.runs or len(block.comment.split()) > 3, "no reason"


def test_every_make_target_is_there() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    named = [made[1] for block in ALL for command in block.commands if (made := MAKE.match(command))]
    assert {"demo", "test"} <= set(named)
    assert set(named) <= set(targets)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_is_known(program: str) -> None:
    """In prose too, and in the blocks that are not run."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lines = re.findall(rf"\b{program} ([^\n`|#]+)", text)
    named = {option for line in lines for option in re.findall(r"(?<!\S)--\w[\w-]*", line)}
    commands = ("up", "down", "status", "demo") if program == "cdc-sandbox" else ()
    shown = "".join(
        subprocess.run([BIN / program, *command, "--help"], capture_output=True, text=True, check=True).stdout
        for command in ([], *([each] for each in commands))
    )
    assert named - set(re.findall(r"--\w[\w-]*", shown)) == set()


@dataclass
class Reader:
    """Somebody who types the commands: a home folder, a working folder, and the programs that are left running."""

    home: Path
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
            "CDC_SPARK_JARS": ",".join(map(str, spark_jars())),  # as fetched before; that is tested elsewhere
            "SPARK_LOCAL_IP": "127.0.0.1",
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
            elif prints := re.match("run: until it prints (.+)", block.comment):
                self.start(command, until_it_prints=prints[1])
            else:
                self.run(command, status=block.status, where=f"{block}: {command}")
        if beside:
            self.stop()

    def run(self, command: str, *, status: int, where: str) -> None:
        if command.startswith(("cdc-audit", "spark-submit")):
            self.catch_up()
            command = re.sub(r"--packages \S+", '--jars "$CDC_SPARK_JARS"', command)
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
def reader() -> Iterator[Reader]:
    # Not below pytest's folder: the path of a MySQL socket is short.
    with tempfile.TemporaryDirectory(prefix="cdc-docs-") as home:
        one = Reader(Path(home))
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
