"""The Docker engine that these tests need: what is in their way, their commands, and what they leave there."""

import subprocess
from shutil import which

from cdc.sandbox.server.process import is_free
from tests.checks.document_commands import ALL

__all__ = [
    "BLOCKS",
    "CONTAINERS",
    "IMAGE",
    "PROGRAMS",
    "PROJECT",
    "SYSTEMD",
    "docker",
    "end_servers",
    "hindrance",
    "left_behind",
    "remove",
]

IMAGE = "cdc-mysql"
PROGRAMS = "cdc-test-programs"  # in the place of the image cdc
SYSTEMD = "cdc-test-systemd"  # the same with systemd
LABEL = f"label=org.opencontainers.image.title={IMAGE}"
PROJECT = "cdc-test"  # the compose file's own name may be that of a user's servers, with their data
CONTAINERS = ("mysql-leader", "mysql-follower", "cdc-test-one", "cdc-test-two")  # of the documents, and of our own
PORTS = (3080, 3090, 9092, 9090, 9000)  # of the repository's profiles, Prometheus, and the page
BLOCKS = [block for block in ALL if block.comment == "not run: needs Docker; make test-docker runs it"]
_PROJECT_LABEL = f"label=com.docker.compose.project={PROJECT}"
_SECONDS = 600  # only against hangs


def docker(*arguments: str, check: bool = True) -> str:
    """What the command prints; it must end well unless told otherwise."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0 or not check, f"docker {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


def hindrance() -> str:
    """Why the tests can't run here, in one line; empty where they can."""
    if not which("docker"):
        return "there is no docker on PATH"
    for command, reason in (("info", "the Docker engine does not answer"), ("compose version", "no docker compose")):
        if subprocess.run(["docker", *command.split()], capture_output=True, check=False).returncode:
            return reason
    if left := left_behind():
        return f"the tests need the names {', '.join(left)}, which are taken: remove them first, if they can go"
    if taken := [str(port) for port in PORTS if not is_free(port)]:
        return f"the tests need the ports of the profiles, which are in use: {', '.join(taken)}"
    return ""


def left_behind() -> list[str]:
    """Containers, volumes and networks with the tests' names."""
    names = docker("ps", "--all", "--format", "{{.Names}}").split()
    containers = [name for name in names if name in CONTAINERS or name.startswith(f"{PROJECT}-")]
    others = [
        name
        for kind in ("volume", "network")
        for name in docker(kind, "ls", "--filter", _PROJECT_LABEL, "--format", "{{.Name}}").split()
    ]
    return sorted(containers) + others


def end_servers() -> None:
    """Removes the servers of the compose file, and their data."""
    docker("compose", "--project-name", PROJECT, "down", "--volumes", "--remove-orphans", check=False)


def remove(*, image_before: str) -> None:
    """Remove what the tests made; the image's name is given back to the one that had it."""
    end_servers()
    if containers := [name for name in left_behind() if name in CONTAINERS]:
        docker("rm", "--force", "--volumes", *containers)
    if image_before:
        docker("tag", image_before, IMAGE)
    else:
        docker("image", "rm", "--force", IMAGE, check=False)
    docker("image", "rm", "--force", PROGRAMS, f"{PROGRAMS}-spark", check=False)
    # compose builds it for each service, and only the last one keeps the name.
    docker("image", "prune", "--force", "--filter", LABEL)
