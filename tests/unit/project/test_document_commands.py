"""The commands in the documents without servers: targets and options exist, and what is not run says why."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cdc.spark.job.options import parse_options
from tests.checks.document_commands import ALL, LINES, MAKE, PAGES, ROOT, Block

BIN = Path(sys.executable).parent
PROGRAMS = (
    "cdc-producer",
    "cdc-consumer",
    "cdc-audit",
    "cdc-repair",
    "cdc-seed",
    "cdc-lake",
    "cdc-tail",
    "cdc-web",
    "cdc-sandbox",
)


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
    lines = re.findall(rf"\b{program} ([^\n`|#;&]+)", text)
    named = {option for line in lines for option in re.findall(r"(?<!\S)--\w[\w-]*", line)}
    commands = ("up", "down", "status", "demo") if program == "cdc-sandbox" else ()
    shown = "".join(
        subprocess.run([BIN / program, *command, "--help"], capture_output=True, text=True, check=True).stdout
        for command in ([], *([each] for each in commands))
    )
    assert named - set(re.findall(r"--\w[\w-]*", shown)) == set()


def test_the_options_of_each_audit_go_together() -> None:
    """In the blocks that are not run, too: an audit ends at once where --watch lacks --state, for one."""
    audits = [command for block in ALL for command in block.commands if command.startswith("cdc-audit --leader ")]
    assert len(audits) > 5
    for command in audits:
        parse_options("cdc-audit", shlex.split(command.rstrip(" &"))[1:])


def test_each_line_to_try_is_a_command_with_profiles_that_are_there() -> None:
    """The long test of the documents' commands runs them; here the shell parses them, and no profile is missing."""
    assert len(LINES) == 34
    for line in LINES:
        subprocess.run(["bash", "-n", "-c", line], check=True)
        assert {*shlex.split(line)} & {*PROGRAMS, "python"}, line
        made = {f"{each}_profile.toml" for each in ("producer", "consumer", "follower")}
        made |= {f"maria/{each}" for each in made} | set(re.findall(r"> (\S+)", line))
        assert set(re.findall(r"[\w/-]+\.toml", line)) <= made, line
