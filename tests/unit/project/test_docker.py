"""What is in docker/, without an engine: the files it names exist, and it agrees with the profiles and the documents.

tests/docker is for the engine.
"""

import os
import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from cdc.config.profile import BOTH_SERVERS, load
from cdc.sandbox.server import kafka, mysql
from tests.checks.document_commands import ALL

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
INSTALL = DOCKER / "install.sh"
COMPOSE = DOCKER / "compose.yml"
TRY_IT = (ROOT / "docs/try-it.md").read_text(encoding="utf-8")
PROFILES = {name: tomllib.loads((ROOT / f"{name}_profile.toml").read_text()) for name in ("producer", "consumer")}
SERVERS = ("leader", "follower")
# Where the sandbox has others.
OURS = {
    "KAFKA_LISTENERS", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "KAFKA_CONTROLLER_QUORUM_VOTERS", "KAFKA_LOG_DIRS",
}  # fmt: skip
PROGRAMS = ("producer", "capture", "consumer", "audit")


@cache
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return content


def copied() -> list[str]:
    """What the Dockerfile copies out of the checkout."""
    lines = re.findall(r"^(?:COPY|ADD)((?: --\S+)*)( .+)$", (DOCKER / "Dockerfile").read_text(), re.M)
    return [source for _, names in lines for source in names.split()[:-1]]


def published(service: str) -> tuple[str, int]:
    """The address of this machine, and the port there."""
    [port] = compose()["services"][service]["ports"]
    address, outside, _ = port.split(":")
    return address, int(outside)


def installed(*arguments: str, path: str = "/nowhere") -> "subprocess.CompletedProcess[str]":
    command = [str(which("bash")), str(INSTALL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path})


def test_what_the_image_copies_exists_and_is_sent_to_the_builder() -> None:
    assert copied()
    assert [source for source in copied() if not (ROOT / source).is_file()] == []
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignore == ["*", *(f"!{source}" for source in copied())]


def test_the_compose_file_builds_the_image_of_the_install_script() -> None:
    for service in SERVERS:
        build = compose()["services"][service]["build"]
        context = (DOCKER / build["context"]).resolve()
        assert context == ROOT
        assert (context / build["dockerfile"]).is_file()
        assert f"readonly image={compose()['services'][service]['image']}\n" in INSTALL.read_text()


def test_volumes_are_declared_and_used_and_no_file_is_missing() -> None:
    services = compose()["services"].values()
    mounts = [volume for service in services for volume in service["volumes"]]
    files = {mount.partition(":")[0] for mount in mounts if mount.startswith(".")}
    assert [name for name in sorted(files) if not (DOCKER / name).exists()] == []
    mounts = [mount for mount in mounts if not mount.startswith(".")]
    written = [mount.partition(":")[0] for mount in mounts if not mount.endswith(":ro")]
    assert len(set(written)) == len(written)
    assert {mount.partition(":")[0] for mount in mounts} == set(written) == set(compose()["volumes"])
    named = [name for each in services for key in ("env_file", "configs", "secrets") for name in each.get(key, ())]
    assert [name for name in named if not (DOCKER / name).is_file()] == []


def test_ports_are_those_of_the_profiles_and_open_to_this_machine_only() -> None:
    broker = PROFILES["producer"]["kafka"]["bootstrap_servers"]
    leader, follower = (PROFILES[name]["database"] for name in ("producer", "consumer"))
    assert published("leader") == (leader["ip_or_host"], leader["port"])
    assert published("follower") == (follower["ip_or_host"], follower["port"])
    assert published("kafka") == (broker.partition(":")[0], int(broker.partition(":")[2]))
    advertised = f"PLAINTEXT://{broker},INSIDE://{profile_inside('producer')['kafka']['bootstrap_servers']}"
    assert compose()["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == advertised
    text = f"MySQL on {published('leader')[1]} and {published('follower')[1]}, Kafka on {published('kafka')[1]}"
    assert text in TRY_IT
    usage = installed("-h", path=os.environ["PATH"]).stdout
    assert f"{leader['port']} for the leader and {follower['port']} for the follower" in usage
    documented = re.findall(r"install\.sh -n \S+-(\w+) -d \S+ -p (\d+)", TRY_IT)
    assert documented == [(service, str(published(service)[1])) for service in SERVERS]


def test_every_server_has_an_id_of_its_own() -> None:
    """Its port, as with the install script."""
    commands = {service: compose()["services"][service]["command"] for service in SERVERS}
    assert commands == {service: [f"--server-id={published(service)[1]}"] for service in SERVERS}


def test_user_and_password_are_those_of_the_grants_and_the_profiles() -> None:
    install, grants = INSTALL.read_text(), (ROOT / "cdc/sandbox/grants.sql").read_text()
    assert {(each["database"]["user"], each["database"]["password"]) for each in PROFILES.values()} == {
        (mysql.USER, mysql.PASSWORD)
    }
    assert f"readonly user={mysql.USER}\nreadonly password='{mysql.PASSWORD}'\n" in install
    assert f"'{mysql.USER}'@'%' IDENTIFIED BY '{mysql.PASSWORD}'" in grants
    for service in SERVERS:
        [_, check] = compose()["services"][service]["healthcheck"]["test"]
        assert check.startswith(f"MYSQL_PWD={mysql.PASSWORD} mysql -h127.0.0.1 -u{mysql.USER} ")


def test_servers_have_the_sandbox_s_settings() -> None:
    options = ConfigParser(allow_no_value=True)
    options.read(DOCKER / "my.cnf")
    given = {name.replace("_", "-"): value for name, value in options["mysqld"].items()}
    wanted = dict(option.removeprefix("--").split("=", 1) for option in mysql._REPLICATION)
    assert {name: given.get(name) for name in wanted} == wanted
    broker = compose()["services"]["kafka"]["environment"]
    both = {name: broker[name] for name in broker if _property(name) in kafka._SETTINGS and name not in OURS}
    assert {name: str(value) for name, value in both.items()} == {
        name: kafka._SETTINGS[_property(name)] for name in both
    }
    # Of a name that is misspelt, the broker says nothing.
    assert set(broker) - set(both) == OURS | {"KAFKA_ADVERTISED_LISTENERS"}


def test_each_listener_of_the_broker_has_its_protocol() -> None:
    broker = compose()["services"]["kafka"]["environment"]
    listeners, advertised, protocols = (
        dict(each.split(":", 1) for each in broker[f"KAFKA_{name}"].split(","))
        for name in ("LISTENERS", "ADVERTISED_LISTENERS", "LISTENER_SECURITY_PROTOCOL_MAP")
    )
    assert set(listeners) == set(protocols) == set(advertised) | {"CONTROLLER"}
    assert (
        protocols.items()
        >= dict(each.split(":") for each in kafka._SETTINGS["listener.security.protocol.map"].split(",")).items()
    )
    assert {name: address.rpartition(":")[2] for name, address in advertised.items()} == {
        name: address.rpartition(":")[2] for name, address in listeners.items() if name != "CONTROLLER"
    }


def profile_inside(name: str) -> dict[str, Any]:
    """A profile of the containers; our own loader takes it."""
    load(DOCKER / f"profiles/{name}.toml", servers=BOTH_SERVERS)
    return tomllib.loads((DOCKER / f"profiles/{name}.toml").read_text())


@pytest.mark.parametrize(
    ("name", "server"), [("producer", "leader"), ("consumer", "follower"), ("follower", "follower")]
)
def test_the_containers_profiles_differ_in_addresses_only(name: str, server: str) -> None:
    inside, outside = profile_inside(name), tomllib.loads((ROOT / f"{name}_profile.toml").read_text())
    assert inside.pop("metrics") == {"host": "0.0.0.0", "port": 9464}
    inside.pop("web", None)
    assert (inside["database"]["ip_or_host"], inside["database"]["port"]) == (server, 3306)
    for each in (inside, outside):
        del each["database"]["ip_or_host"], each["database"]["port"], each["kafka"]["bootstrap_servers"]
    assert inside == outside


def test_without_the_profile_full_only_the_servers_start() -> None:
    services = compose()["services"]
    assert {name for name, each in services.items() if "profiles" not in each} == {*SERVERS, "kafka"}
    assert {name for name, each in services.items() if each.get("profiles") == ["full"]} == {
        *PROGRAMS, "page", "prometheus",
    }  # fmt: skip


def test_the_page_is_on_the_port_of_the_documents_and_asks_the_programs_where_they_are() -> None:
    page = compose()["services"]["page"]
    assert published("page") == ("127.0.0.1", 9000)
    profiles = {name: profile_inside(name)["web"] for name in ("producer", "consumer")}
    assert profiles["producer"].pop("listen") == "0.0.0.0:9000"
    assert page["environment"].keys() >= {profiles["producer"].pop("password_env")}
    assert profiles == {name: {"metrics": f"{name}:9464"} for name in profiles}
    audit = compose()["services"]["audit"]["command"]
    report = f"/audit/{audit[audit.index('--report') + 1]}"
    assert {"audit:/home/cdc"} < set(compose()["services"]["audit"]["volumes"]) and "audit:/audit:ro" in page["volumes"]
    assert page["command"] == ["cdc-web", "/etc/cdc/producer.toml", "/etc/cdc/consumer.toml", "--report", report]


def test_each_program_is_scraped_and_reads_a_profile_that_is_there() -> None:
    jobs = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"]
    scraped = {target for job in jobs for each in job["static_configs"] for target in each["targets"]}
    assert scraped == {f"{name}:9464" for name in PROGRAMS}
    assert all(job["job_name"].startswith("cdc") for job in jobs), "CdcDown looks at these names"
    for name in PROGRAMS:
        command = compose()["services"][name]["command"]
        assert (Path(sys.executable).parent / command[0]).exists()
        profiles = [word.removeprefix("/etc/cdc/") for word in command if word.startswith("/etc/cdc/")]
        assert [each for each in profiles if not (DOCKER / "profiles" / each).is_file()] == []


def test_what_the_image_of_the_programs_copies_is_sent_to_the_builder() -> None:
    text = (DOCKER / "programs.Dockerfile").read_text()
    lines = re.findall(r"^COPY (?!--from)(.+)$", text, re.M)
    sources = {source for line in lines for source in line.split()[:-1]}
    sources |= set(re.findall(r"--mount=type=bind,source=([^,]+),", text))
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (DOCKER / "programs.Dockerfile.dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == sources
    assert re.findall(r"^USER (\S+)", text, re.M)[-1] == "10001:10001"
    assert re.findall(r"^FROM \S+ AS (\S+)", text, re.M)[-1] == "programs"


def _property(variable: str) -> str:
    """The broker's setting that the image makes of an environment variable."""
    return variable.removeprefix("KAFKA_").lower().replace("_", ".")


def test_the_script_is_sound() -> None:
    subprocess.run(["bash", "-n", INSTALL], check=True)
    subprocess.run([Path(sys.executable).with_name("shellcheck"), INSTALL], check=True)
    assert INSTALL.stat().st_mode & 0o111


def test_what_the_documents_name_exists() -> None:
    commands = [command for block in ALL for command in block.commands if re.match("docker|docker/", command)]
    files = [word for command in commands for word in command.split() if word.startswith("docker/")]
    assert {"docker/compose.yml", "docker/install.sh"} <= set(files)
    assert [file for file in files if not (ROOT / file).is_file()] == []
    services = [found[1] for each in commands if (found := re.search(r" exec -T (\w+) ", each))]
    assert services
    assert set(services) <= set(compose()["services"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("", "-n NAME is missing"),
        ("-n one", "-d DIR is missing"),
        ("-n one -d two", "-p PORT is missing"),
        ("-n one -d two -p", "-p needs a value"),
        ("-n one -d two -p 3080 -x", "unknown option -x"),
        ("-n one -d two -p 3080 four", "unknown argument 'four'"),
        ("-n -one -d two -p 3080", "'-one' cannot be a container's name"),
        ("-n one -d two -p 65536", "'65536' is not a port"),
        ("-n one -d two -p 0", "'0' is not a port"),
        ("-n one -d two -p 3080", "there is no docker on PATH"),
    ],
)
def test_the_script_refuses_in_one_line(arguments: str, reason: str) -> None:
    done = installed(*arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"install.sh: {reason}")


if (
    which("docker")
    and not subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
):

    def test_docker_takes_the_compose_file() -> None:
        """Where Docker is installed; its engine need not run."""
        subprocess.run(["docker", "compose", "--file", COMPOSE, "config", "--quiet"], check=True)
