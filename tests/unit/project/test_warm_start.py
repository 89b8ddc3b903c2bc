"""A program that a test runs as a fork says what the installed one says, and ends as it does."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.harness.programs import BIN, LIMIT_SECONDS
from tests.harness.warm_start import WarmProcess, _next_forker, run_warm


@pytest.mark.parametrize("program", ["cdc-producer", "cdc-consumer", "cdc-tail"])
@pytest.mark.parametrize("arguments", [["--help"], ["broken.toml"]])
def test_the_same_as_the_installed_program(
    program: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    Path("broken.toml").write_text("[kafka\n")
    installed = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, check=False)
    fork = run_warm(program, *arguments, seconds=LIMIT_SECONDS)
    assert (fork.returncode, fork.stdout, fork.stderr) == (installed.returncode, installed.stdout, installed.stderr)


def test_a_program_that_is_started_again_has_other_hashes() -> None:
    first, second, third = (_next_forker("cdc-producer") for _ in range(3))
    assert first is third
    assert first is not second


def test_one_in_the_background_is_told_to_end(tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('[kafka]\nbootstrap_servers = "127.0.0.1:9"\n')
    with WarmProcess("cdc-tail", str(profile), "--follow", stderr=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        assert process.poll() is None
        process.kill()
        assert process.communicate(LIMIT_SECONDS) == (None, "")
        assert process.communicate(LIMIT_SECONDS) == (None, None)
        assert process.poll() == process.wait() == -signal.SIGKILL
        process.terminate()  # which goes to nobody


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text('[kafka]\nbootstrap_servers = "127.0.0.1:9"\n')
    with pytest.raises(subprocess.TimeoutExpired):
        run_warm("cdc-tail", str(tmp_path / "profile.toml"), "--follow", seconds=1)
