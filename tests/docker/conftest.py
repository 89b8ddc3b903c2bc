"""Only `make test-docker` runs these tests. Where they can't run they say why, and end with exit status 2."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checks.document_commands import ROOT
from tests.docker.engine import (
    CONTAINERS,
    IMAGE,
    PROGRAMS,
    PROJECT,
    docker,
    end_servers,
    hindrance,
    left_behind,
    remove,
)
from tests.harness.wait import LIMIT_SECONDS

BASE = os.environ.get("CDC_BASE")
Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    if reason := hindrance():
        pytest.exit(f"make test-docker: {reason}", returncode=2)


def pytest_report_header() -> str:
    return docker("version", "--format", "Docker: engine {{.Server.Version}}, client {{.Client.Version}}")


@pytest.fixture(scope="session", autouse=True)
def engine_as_it_was() -> Iterator[None]:
    """What the tests made is removed, however they end. The images that ours are made from stay."""
    image = docker("image", "ls", "--quiet", "--no-trunc", IMAGE)
    try:
        yield
    finally:
        remove(image_before=image)
    assert left_behind() == []


@pytest.fixture(scope="session")
def image() -> str:
    """The image of the programs."""
    base = ["--build-arg", f"BASE={BASE}"] if BASE else []
    docker("build", "--network", "host", *base, "--file", "docker/programs.Dockerfile", "--tag", PROGRAMS, ".")
    return PROGRAMS


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for data, with a space in its name."""
    folder = tmp_path_factory.mktemp("a home")
    try:
        yield folder
    finally:
        docker("rm", "--force", *CONTAINERS, check=False)
        # Servers' data belong to the image's user, and only root may remove them.
        if docker("image", "ls", "--quiet", IMAGE):
            emptying = ("--entrypoint", "find", IMAGE, "/home", "-mindepth", "1", "-delete")
            docker("run", "--rm", "--volume", f"{folder}:/home", *emptying)
        assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def shell(home: Path) -> Iterator[Shell]:
    """Runs a command in the repository's top folder, for a user whose home is ``home``. The servers of the compose file
    and their data are removed afterwards: the next module has its own.
    """
    environment = os.environ | {
        "HOME": str(home),
        "DOCKER_CONFIG": os.environ.get("DOCKER_CONFIG", str(Path.home() / ".docker")),
        "COMPOSE_PROJECT_NAME": PROJECT,
    }

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip

    yield run
    end_servers()
