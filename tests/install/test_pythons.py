"""The unit tests on each newer Python that is on this machine, on PATH or in pyenv's folder."""

import os
import shutil
from pathlib import Path

import pytest

from tests.install.test_wheel import ROOT, run


def interpreter(version: str) -> Path | None:
    """The interpreter of a version; None if this machine has none that starts."""
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    in_folder = sorted(folder.glob(f"{version}.*/bin/python{version}"))
    on_path = shutil.which(f"python{version}", path=_without_shims())
    return in_folder[-1] if in_folder else Path(on_path) if on_path else None


def _without_shims() -> str:
    # A shim of pyenv is on PATH whichever versions are installed.
    return os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if not each.endswith("/shims"))


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_unit_tests_pass(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    run(python, "-m", "venv", tmp_path)
    run(tmp_path / "bin/pip", "install", "--quiet", "--editable", f"{ROOT}[spark,dev]")
    # The linters of tests/unit/project look at the same files whatever the Python is.
    tests = ["tests/unit", "--ignore=tests/unit/project", "-p", "no:cacheprovider", "-q", "--numprocesses=2"]
    print(run(tmp_path / "bin/pytest", *tests))
