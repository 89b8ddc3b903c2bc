"""docker/install.sh on an engine: what it starts, what it refuses, and whose data it keeps."""

import shlex
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.sandbox.server.mysql import PASSWORD, USER
from cdc.sandbox.server.process import free_port
from cdc.service.mysql_connection import connected
from tests.docker.conftest import Shell
from tests.docker.engine import docker
from tests.harness.wait import until

ONE, TWO = "cdc-test-one", "cdc-test-two"
SETTINGS = {
    "log_bin": 1,
    "gtid_mode": "ON",
    "binlog_format": "ROW",
    "binlog_row_metadata": "FULL",
    "binlog_row_image": "FULL",
    "log_bin_trust_function_creators": 1,
}


@dataclass
class Server:
    """A server that the script is to start."""

    shell: Shell
    name: str
    folder: Path
    port: int

    def install(self) -> tuple[int, str, str]:
        options = ("-n", self.name, "-d", str(self.folder), "-p", str(self.port))
        done = self.shell(shlex.join(["docker/install.sh", *options]))
        return done.returncode, done.stdout, done.stderr

    def refusal(self) -> str:
        """The one line that says why the script did nothing."""
        status, _, said = self.install()
        assert status == 2, said
        [line] = [line for line in said.splitlines() if line.startswith("install.sh: ")]
        return line

    def value(self, expression: str) -> Any:
        with (
            connected(host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(expression)
            row = cursor.fetchone()
        return row and row[0]

    def answers(self) -> bool:
        try:
            return bool(self.value("SELECT 1"))
        except pymysql.err.OperationalError:
            return False


@pytest.fixture(scope="module")
def server(shell: Shell, home: Path) -> Iterator[Server]:
    """A server that runs, with a database ``kept``."""
    one = Server(shell, ONE, home / "data of one", free_port())
    try:
        status, said, errors = one.install()
        assert status == 0, said + errors
        assert said.splitlines()[-2:] == [
            f"✅ MySQL answers on 127.0.0.1:{one.port} as {USER} (password {PASSWORD}), server_id {one.port}",
            f"Remove it again: docker rm -f {ONE} (its data stay in {one.folder})",
        ]
        one.value("CREATE DATABASE kept")
        yield one
    finally:
        docker("rm", "--force", ONE, TWO, check=False)


def kept(server: Server) -> bool:
    return bool(server.value("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'kept'"))


def test_a_server_has_what_the_programs_need(server: Server) -> None:
    assert {name: server.value(f"SELECT @@GLOBAL.{name}") for name in SETTINGS} == SETTINGS
    assert server.value("SELECT @@GLOBAL.server_id") == server.port
    granted = "information_schema.user_privileges WHERE privilege_type = 'ALLOW_NONEXISTENT_DEFINER'"
    assert server.value(f"SELECT COUNT(*) FROM {granted} AND grantee LIKE '_{USER}_@%'") == 1


def test_a_second_start_says_that_the_name_is_taken(server: Server) -> None:
    assert server.refusal().startswith(f"install.sh: a container '{ONE}' exists already: docker start {ONE}, or ")
    assert kept(server)


def test_a_port_in_use_is_refused(server: Server, home: Path) -> None:
    two = Server(server.shell, TWO, home / "data of two", server.port)
    assert two.refusal().startswith(f"install.sh: port {server.port} is in use")
    assert not two.folder.exists()


def test_a_port_that_docker_cannot_have_leaves_no_container(server: Server, home: Path) -> None:
    """Bound, though nobody listens there yet: the script can't tell that from a free one."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        two = Server(server.shell, TWO, home / "data of two", bound.getsockname()[1])
        assert two.refusal() == "install.sh: the container could not be started; see Docker's message above"
    assert TWO not in docker("ps", "--all", "--format", "{{.Names}}").split()


def test_a_folder_that_a_running_server_uses_is_refused(server: Server, home: Path) -> None:
    (home / "another way to it").symlink_to(server.folder)
    two = Server(server.shell, TWO, home / "another way to it", free_port())
    assert two.refusal().startswith(f"install.sh: the folder {server.folder} is in use by the container '{ONE}'")
    assert kept(server)


def test_a_folder_of_other_files_is_refused_and_left_as_it_is(server: Server, home: Path) -> None:
    folder = home / "letters"
    folder.mkdir()
    letter = folder / "letter.txt"
    letter.touch()
    owner = letter.stat().st_uid
    two = Server(server.shell, TWO, folder, free_port())
    assert two.refusal().startswith(f"install.sh: the folder {folder} holds other files than a server's data")
    assert (letter.stat().st_uid, list(folder.iterdir())) == (owner, [letter])


def test_data_outlive_a_restart_and_the_container(server: Server) -> None:
    docker("restart", ONE)
    until(server.answers, what=f"{ONE} answers again")
    assert kept(server)
    uuid = server.value("SELECT @@GLOBAL.server_uuid")
    docker("rm", "--force", ONE)
    again = Server(server.shell, ONE, server.folder, free_port())
    status, said, errors = again.install()
    assert status == 0, said + errors
    assert kept(again)
    assert again.value("SELECT CONCAT(@@GLOBAL.server_uuid, @@GLOBAL.server_id)") == f"{uuid}{again.port}"
