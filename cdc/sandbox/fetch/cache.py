"""Keeps downloads in a cache folder, so that each file is downloaded only once for all sandboxes and tests."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdc.errors import UserError

__all__ = ["cached", "run_fetch"]


def _cache_folder() -> Path:
    """Returns the cache folder, ``$CDC_CACHE`` or by default ``~/.cache/cdc``, and creates it if needed. Raises
    UserError if the folder can't be used.
    """
    named = os.environ.get("CDC_CACHE")
    folder = Path(named) if named else Path.home() / ".cache" / "cdc"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot use the cache folder {folder}: {error}", code="CDC-SANDBOX-CACHE", hint="set CDC_CACHE to another"
        ) from None
    return folder


def cached(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns the folder ``name`` in the cache. If it does not exist, calls ``fill`` to write its content to a new
    folder.

    Other processes wait while the folder is being filled.
    """
    folder = _cache_folder() / name
    if folder.exists():
        return folder
    with _lock(folder.with_name(f".{name}.lock")):
        if not folder.exists():
            for left_over in folder.parent.glob(f".{name}.fill-*"):
                shutil.rmtree(left_over, ignore_errors=True)
            # The folder gets its name only when its content is complete. So an interrupted download leaves no
            # incomplete folder with that name.
            with tempfile.TemporaryDirectory(prefix=f".{name}.fill-", dir=folder.parent) as aside:
                content = Path(aside, "content")
                content.mkdir()
                fill(content)
                content.rename(folder)
    return folder


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_fetch(
    command: Sequence[str | Path], *, label: str, into: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Runs a command that downloads ``label`` into the folder ``into``, and shows the progress on standard error.

    Raises UserError, with the error lines of the command's output, if the command fails.
    """
    terminal = sys.stderr.isatty()
    started = time.monotonic()
    print(f"Fetching {label} …", file=sys.stderr, end="" if terminal else "\n", flush=True)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while _still_runs(process):
                if terminal:
                    print(f"\rFetching {label} … {_megabytes(into)} MB", file=sys.stderr, end="", flush=True)
        finally:
            process.kill()
            process.wait()
            if terminal:
                print("\r\033[K", file=sys.stderr, end="")
        if process.returncode:
            output.seek(0)
            raise _failure(command, output.read().decode(errors="replace"), label=label)
        print(f"Fetched {label}: {_megabytes(into)} MB in {time.monotonic() - started:.0f} s", file=sys.stderr)


def _failure(command: Sequence[str | Path], output: str, *, label: str) -> UserError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or line.startswith("E:")] or lines[-3:]
    return UserError(
        f"cannot fetch {label}: {' | '.join(errors[:3])}",
        code="CDC-SANDBOX-FETCH",
        where=Path(command[0]).name,
        hint="check the network, then run it again",
    )


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=0.25)
    except subprocess.TimeoutExpired:
        return True
    return False


def _megabytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue  # in the meantime the download has renamed the file
    return total // 1_000_000
