"""What all programs have: a version, examples that their options allow, and a completion that bash takes."""

import importlib
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc import __version__

ROOT = Path(__file__).parents[3]
PROGRAMS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
Printed = Callable[..., str]


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def printed(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """What the program prints for these arguments, with which it ends well without doing anything."""
    module, _, main = PROGRAMS[program].partition(":")

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", [program, *arguments])
        with pytest.raises(SystemExit) as ended:
            getattr(importlib.import_module(module), main)()
        assert ended.value.code in (0, None)
        return capsys.readouterr().out

    return run


def test_every_program_says_its_version(printed: Printed) -> None:
    assert printed("--version") == f"cdc {__version__}\n"


def test_the_help_ends_with_examples_of_its_own_options(program: str, printed: Printed) -> None:
    options, _, examples = printed("--help").partition("\nexamples:\n")
    lines = examples.strip().splitlines()
    assert len(lines) >= 2
    assert all(line.startswith(f"  {program} ") for line in lines[1:])
    if program == "cdc-sandbox":
        options += printed("up", "--help") + printed("down", "--help")
    assert set(re.findall(r"--\w[\w-]*", examples)) <= set(re.findall(r"--\w[\w-]*", options))


def completed(script: str, *words: str) -> set[str]:
    """What bash offers after these words, the last of which is not complete."""
    name = re.search(r"^complete .* -F (\w+) ", script, re.MULTILINE)
    assert name
    given = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; {name[1]}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-euc", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_the_options(program: str, printed: Printed) -> None:
    script = printed("--completion", "bash")
    usage = set(re.findall(r"--\w[\w-]*", re.split(r"\n\noptions:", printed("--help"))[0]))
    assert usage - {"--help"} <= completed(script, program, "--")
    assert completed(script, program, "--vers") == {"--version"}
    assert completed(script, program, "--completion", "") == {"bash", "zsh"}
    assert "autoload -U +X bashcompinit" in printed("--completion", "zsh")
    if program == "cdc-sandbox":
        assert completed(script, program, "d") == {"down", "demo"}
        assert completed(script, program, "down", "--") == {"--help", "--wipe", "--dir"}
    if program == "cdc-lake":
        assert completed(script, program, "p.toml", "--format", "i") == {"iceberg"}
