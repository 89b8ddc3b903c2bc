"""A producer's unit in a systemd of its own: active once the servers have answered, and started again where that helps.

The image is that of the programs with Debian's systemd. It needs the capability SYS_ADMIN and the host's cgroups.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.document_commands import ROOT
from tests.docker.engine import PROGRAMS, SYSTEMD, docker
from tests.harness.programs import write_profile
from tests.harness.wait import until

DOCKERFILE = f"""
FROM {PROGRAMS}
USER root
RUN apt-get update -q && apt-get install -y -q --no-install-recommends systemd && rm -rf /var/lib/apt/lists/*
COPY *.service /etc/systemd/system/
COPY cdc.sysusers.conf /etc/sysusers.d/cdc.conf
RUN userdel cdc && systemd-sysusers
HEALTHCHECK NONE
CMD ["/lib/systemd/systemd"]
"""
# A unit that ends with a status at once.
ENDS = "[Service]\nExecStart=\nExecStart=/bin/sh -c 'exit {}'\n"


class Machine:
    """A container with systemd."""

    def __init__(self, container: str) -> None:
        self.container = container

    def run(self, *command: str) -> str:
        return docker("exec", self.container, *command, check=False)

    def state(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", "--property", name, "--value", unit)

    def write(self, path: str, text: str) -> None:
        self.run("sh", "-c", f'mkdir -p $(dirname {path}) && printf %s "$0" > {path}', text)


@pytest.fixture
def machine(image: str, tmp_path: Path) -> Iterator[Machine]:
    file = tmp_path / "Dockerfile"
    file.write_text(DOCKERFILE)
    docker("build", "--network", "host", "--file", str(file), "--tag", SYSTEMD, str(ROOT / "deploy/systemd"))
    container = docker(
        "run", "--detach", "--network", "host", "--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined",
        "--tmpfs", "/run", "--tmpfs", "/tmp", "--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw",
        SYSTEMD,
    )  # fmt: skip
    one = Machine(container)
    try:
        until(lambda: one.run("systemctl", "is-system-running") in ("running", "degraded"), what="systemd")
        yield one
    finally:
        docker("rm", "--force", container)
        docker("image", "rm", "--force", SYSTEMD, check=False)


def test_systemd_runs_a_unit(machine: Machine, leader: MySql, kafka: Kafka, tmp_path: Path) -> None:
    profile = write_profile(tmp_path, leader, kafka, name="unit", producer={"start": "now"})
    machine.write("/etc/cdc/shop.toml", profile.read_text())
    machine.run("chgrp", "cdc", "/etc/cdc/shop.toml")
    unit = "cdc-producer@shop"
    machine.run("systemctl", "start", unit)
    assert machine.state(unit, "ActiveState") == "active", machine.run("journalctl", "--unit", unit)
    assert "sequence" in machine.state(unit, "StatusText")
    first = machine.state(unit, "MainPID")
    machine.run("systemctl", "kill", "--signal", "KILL", unit)
    until(
        lambda: machine.state(unit, "ActiveState") == "active" and machine.state(unit, "MainPID") != first,
        what="it is started again",
    )
    machine.run("systemctl", "stop", unit)
    assert machine.state(unit, "Result") == "success"

    for status in (2, 3, 4):
        machine.write(f"/etc/systemd/system/cdc-producer@{status}.service.d/ends.conf", ENDS.format(status))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "--no-block", *(f"cdc-producer@{status}" for status in (2, 3, 4)))
    until(lambda: int(machine.state("cdc-producer@4", "NRestarts") or 0) > 0, what="4 is started again")
    for status in ("2", "3"):
        ended = f"cdc-producer@{status}"
        assert [machine.state(ended, name) for name in ("ActiveState", "NRestarts", "ExecMainStatus")] == [
            "failed", "0", status,
        ]  # fmt: skip
