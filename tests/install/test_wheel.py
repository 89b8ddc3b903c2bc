"""The wheel in environments that have nothing else, and the programs with the oldest and newest packages allowed."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RANGED = ("mysql-replication", "pymysql")
# Each of them connects, and reads a binlog: by TLS and without it, by each way of login, and with all types.
TESTS = (
    "tests/unit/consumer/test_private_names.py",
    "tests/unit/producer/test_private_names.py",
    "tests/unit/producer/binlog",
    "tests/integration/consumer/test_connection.py",
    "tests/integration/producer/test_connection.py",
    "tests/integration/pair/test_login.py",
    "tests/integration/pair/test_types.py",
)


_WITHOUT_SPARK = "--deselect=tests/integration/pair/test_login.py::test_the_last_line_is_json_where_the_log_is"


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ) | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # The wheel is built from a copy: a folder build/ left in the checkout would add modules that no longer exist.
    shutil.copytree(ROOT / "cdc", folder / "source/cdc", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder / "source")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uv")
    venv.create(folder, with_pip=True)
    run(folder / "bin/pip", "install", "--quiet", "uv")
    return folder / "bin/uv"


def test_the_wheel_is_typed_and_says_what_it_is(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "cdc").rglob("*") if path.is_file()}
    assert {each for each in files if "__pycache__" not in each} == {name for name in names if name.startswith("cdc/")}
    assert "cdc/py.typed" in names
    assert "Classifier: Typing :: Typed" in metadata
    assert f"Requires-Python: {PROJECT['requires-python']}" in metadata


def test_uv_installs_all_programs_as_a_tool(wheel: Path, uv: Path, tmp_path: Path) -> None:
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    run(uv, "tool", "install", "--no-config", "--python", sys.executable, wheel, **folders)
    assert {path.name for path in (tmp_path / "bin").iterdir()} == set(PROJECT["scripts"])
    for program in PROJECT["scripts"]:
        said = run(tmp_path / "bin" / program, "--version", PATH="/usr/bin:/bin", PYTHONPATH="")
        assert re.fullmatch(r"cdc \d+\.\d+\.\d+\n", said)
    # Beyond its options: it loads a profile, and says in one line what is missing.
    done = subprocess.run(
        [tmp_path / "bin/cdc-tail", tmp_path / "none.toml"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def oldest(package: str) -> str:
    [requirement] = [each for each in PROJECT["dependencies"] if re.split("[<>=]", each)[0] == package]
    bound = re.search(r">=([\d.]+)", requirement)
    assert bound
    return f"{package}=={bound[1]}"


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_the_programs_work_with_the_packages(uv: Path, tmp_path: Path, which: str) -> None:
    python = tmp_path / "bin/python"
    run(uv, "venv", "--python", sys.executable, "--allow-existing", tmp_path)
    wanted = [oldest(package) for package in RANGED] if which == "oldest" else ["--upgrade", *RANGED]
    tools = ("pytest<9.2", "pytest-xdist", "hypothesis", "pyyaml", "pip")
    run(uv, "pip", "install", "--python", python, "--editable", ROOT, *tools, *wanted)
    listed = run(uv, "pip", "list", "--python", python)
    print("\n" + "\n".join(line for line in listed.splitlines() if line.startswith(RANGED)))
    run(python, "-m", "pytest", "-q", _WITHOUT_SPARK, *TESTS, CDC_REQUIRE_INTEGRATION="1")
