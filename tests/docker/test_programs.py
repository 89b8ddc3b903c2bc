"""The image of the programs, and all of them together with Prometheus.

Where the usual base images can't be pulled, CDC_BASE names another with Python 3.11, its venv and pip, and
CDC_PROMETHEUS one of Prometheus.
"""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.checks.alerts import alerts
from tests.docker.conftest import BASE, Shell
from tests.docker.engine import PROGRAMS, PROJECT, docker
from tests.harness.outside import get, scrape
from tests.harness.programs import write_profile
from tests.harness.wait import until

COMPOSE = f"docker compose -f docker/compose.yml --project-name {PROJECT} --profile full"
WRITTEN, READ = '-e "INSERT INTO flvDb.kit VALUES (1)"', '-N -e "SELECT COUNT(*) FROM flvDb.kit"'


def megabytes(image: str) -> float:
    return int(docker("image", "inspect", "--format", "{{.Size}}", image)) / 1e6


def test_the_image_is_small_and_not_root(image: str) -> None:
    if BASE:
        assert megabytes(image) - megabytes(BASE) < 100, "what is ours; the usual base has some 130 MB"
    else:
        assert megabytes(image) <= 250
    assert docker("run", "--rm", image, "id", "-u") == "10001"
    assert docker("run", "--rm", image, "cdc-producer", "--version").startswith("cdc ")
    assert docker("run", "--rm", image, "cdc-consumer", "--completion", "bash")


@pytest.fixture
def producer(image: str, leader: MySql, kafka: Kafka, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The id of a container with a producer, which may write nowhere, and the port of its metrics."""
    port = free_port()
    profile = write_profile(
        tmp_path, leader, kafka, name="contained", metrics={"port": port}, producer={"start": "now"}
    )
    tmp_path.chmod(0o755)
    profile.chmod(0o644)
    container = docker(
        "run", "--detach", "--network", "host", "--read-only", "--tmpfs", "/tmp", "--env", f"CDC_METRICS_PORT={port}",
        "--volume", f"{profile}:/etc/cdc/profile.toml:ro", image, "cdc-producer", "/etc/cdc/profile.toml",
    )  # fmt: skip
    try:
        yield container, port
    finally:
        docker("rm", "--force", container)


def test_a_producer_in_a_container_works_is_healthy_and_ends_well(producer: tuple[str, int]) -> None:
    container, port = producer
    until(lambda: get(port, "/readyz")[0] == 200, what="the servers")
    state = "{{.State.Health.Status}}"
    until(lambda: docker("inspect", "--format", state, container) == "healthy", what="health")
    assert scrape(port)["cdc_info"] == 1
    docker("stop", container)
    assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"


def asked(path: str) -> Any:
    """The data that Prometheus answers with."""
    with urllib.request.urlopen(f"http://127.0.0.1:9090/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)["data"]


def firing() -> set[str]:
    return {each["labels"]["alertname"] for each in asked("alerts")["alerts"] if each["state"] == "firing"}


def page_text() -> str:
    """The first page of cdc-web, as somebody with the password sees it."""
    asking = urllib.request.Request("http://127.0.0.1:9000/", headers={"Authorization": "Bearer cdc"})
    with urllib.request.urlopen(asking, timeout=60) as answer:
        return str(answer.read().decode())


def test_all_programs_together_and_an_alert(shell: Shell) -> None:
    def sql(server: str, statement: str) -> str:
        done = shell(f"{COMPOSE} exec -T {server} mysql -uroot -proot {statement}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    for service in ("producer", "audit"):  # one after the other: that with Spark takes long
        built = shell(f"CDC_IMAGE={PROGRAMS} {COMPOSE} build {service}")
        assert built.returncode == 0, built.stdout + built.stderr
    up = shell(f"CDC_IMAGE={PROGRAMS} {COMPOSE} up --build --wait")
    assert up.returncode == 0, up.stdout + up.stderr
    sql("leader", '-e "CREATE DATABASE flvDb; CREATE TABLE flvDb.kit (i INT PRIMARY KEY)"')
    sql("leader", WRITTEN)
    until(lambda: sql("follower", READ) == "1", what="the row on the follower")
    loaded = {rule["name"] for group in asked("rules")["groups"] for rule in group["rules"]}
    assert loaded == set(alerts())
    until(
        lambda: {each["health"] for each in asked("targets")["activeTargets"]} == {"up"}, what="four programs scraped"
    )
    assert len(asked("targets")["activeTargets"]) == 4
    until(lambda: len(asked("query?query=cdc_audit_exit_status==0")["result"]) == 1, what="an audit without drift")
    assert firing() == set()
    until(lambda: all(text in page_text() for text in ("Nothing waits", "No drift")), what="the page says so")
    sql("follower", '-e "INSERT INTO flvDb.kit VALUES (2)"')
    until(lambda: "CdcDrift" in firing(), what="the next audit finds a row that somebody wrote on the follower")
    until(lambda: "Foreign writes" in page_text() and "No drift" not in page_text(), what="the page says so, too")
    assert shell(f"{COMPOSE} stop producer").returncode == 0
    until(lambda: "CdcDown" in firing(), what="the alert that the producer has ended")
