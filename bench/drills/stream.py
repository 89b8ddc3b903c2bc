"""The stream of a drill: a producer and a consumer that run, and are run to the end when the drill is over."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.measure import BIN
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = ["CONSUMER", "PRODUCER", "profile", "run_to_the_end", "running"]

PRODUCER, CONSUMER = "cdc-producer", "cdc-consumer"


def profile(path: Path, server: MySql, kafka: Any, *, hosts: Sequence[MySql] = (), lines: str = "") -> Path:
    """Writes a profile for ``server``, and for ``hosts``, which may take its place; ``kafka`` has the brokers'
    addresses. ``lines`` are further tables."""
    others = ", ".join(f'"127.0.0.1:{each.port}"' for each in hosts)
    path.write_text(
        f'[database]\nport = {server.port}\nuser = "{USER}"\npassword = "{PASSWORD}"\nhosts = [{others}]\n'
        f'[kafka]\nbootstrap_servers = "{kafka.bootstrap_servers}"\ntopic = "drill"\n{lines}'
        "[producer]\n[consumer]\n"
    )
    return path


@contextmanager
def running(source: Path, target: Path) -> Iterator[None]:
    """Runs a producer and a consumer inside the context; each has a log beside its profile."""
    with ExitStack() as opened:
        for program, path in ((PRODUCER, source), (CONSUMER, target)):
            log = opened.enter_context(path.with_suffix(".log").open("w"))
            process = subprocess.Popen([BIN / program, path], stderr=log)
            opened.callback(process.wait)
            opened.callback(process.terminate)
        yield


def run_to_the_end(source: Path, target: Path) -> None:
    """Runs producer and consumer until the follower has everything."""
    for program, path in ((PRODUCER, source), (CONSUMER, target)):
        with path.with_suffix(".log").open("a") as log:
            subprocess.run([BIN / program, path, "--until-current"], check=True, stderr=log)
