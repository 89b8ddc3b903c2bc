"""Every case: its records, what the programs log, and what the follower then holds are as the file says.

A case is a file in ``tests/cases``; how one is written stands in ``tests/checks/case.py``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from cdc.sandbox.fetch.mysql_programs import mysql_programs, mysql_programs_80
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.case import FOLDER, Case, cases, load
from tests.harness.case_run import CaseRun, Programs, run_alone, run_together
from tests.harness.programs import own_name
from tests.harness.server_fixtures import MySqlFactory, new_databases_dropped
from tests.harness.topic import LeaderTopic

pytestmark = pytest.mark.integration

ROLES = ("leader", "follower")
SERVER_IDS = {"leader": 41, "follower": 42}
Versions = tuple[str, str]
USUAL = ("9.7", "9.7")  # the versions of leader and follower, where a case does not name its own
OTHERS = (("8.0", "8.0"), ("9.7", "8.0"), ("8.0", "9.7"))  # which only long runs try


def parameters(*, shared: bool) -> list[object]:
    return [*_parameters(shared=shared)]


def _parameters(*, shared: bool) -> Iterator[object]:
    """The versions and the case of each test: each case with the usual versions, and in long runs with others."""
    for path in cases():
        case, name = load(path), str(path.relative_to(FOLDER).with_suffix(""))
        if case.shared is shared:
            yield pytest.param(USUAL, case, id=name, marks=_of_one_worker(case, USUAL))
            for versions in () if case.of_80 else OTHERS:
                if not any(
                    version == "8.0" and role in case.newer for role, version in zip(ROLES, versions, strict=True)
                ):
                    marks = [pytest.mark.long, *_of_one_worker(case, versions)]
                    yield pytest.param(versions, case, id=f"{name}-{'-'.join(versions)}", marks=marks)


def _of_one_worker(case: Case, versions: Versions) -> list[pytest.MarkDecorator]:
    """The mark of cases whose servers have the same options or versions: one worker starts these once for all."""
    if versions != USUAL or case.of_80:
        return [pytest.mark.xdist_group("8.0")]
    if case.servers:
        options = sorted({option for each in case.servers.values() for option in each})
        return [pytest.mark.xdist_group(f"servers {' '.join(options)}")]
    return [pytest.mark.xdist_group("cases")] if case.shared else []


@dataclass(frozen=True)
class Together:
    """Runs the shared cases of this run through one pair of programs for each pair of versions."""

    request: pytest.FixtureRequest
    folder: Path
    kafka: Kafka
    _failures: dict[Versions, dict[str, BaseException]] = field(default_factory=dict)

    def failure(self, versions: Versions, case: Case) -> BaseException | None:
        """What the case failed with on servers of these versions."""
        if versions not in self._failures:
            self._failures[versions] = self._run(versions)
        return self._failures[versions].get(case.name)

    def _run(self, versions: Versions) -> dict[str, BaseException]:
        items = [item.callspec.params for item in self.request.session.items if "together" in item.fixturenames]
        wanted = [params["case"] for params in items if params["versions"] == versions]
        leader, follower = (shared_server(self.request, *each) for each in zip(ROLES, versions, strict=True))
        folder = self.folder / "-".join(versions)
        folder.mkdir(exist_ok=True)
        name = f"cases_{own_name(self.folder)}_{'_'.join(versions).replace('.', '')}"
        programs = Programs.make(folder, (leader, follower), self.kafka, name=name)
        failures: dict[str, BaseException] = {}
        runs = [CaseRun(case, leader, follower, programs.resource) for case in wanted]
        with new_databases_dropped(leader, follower):
            run_together(runs, programs, failures)
        return failures


def shared_server(request: pytest.FixtureRequest, role: str, version: str) -> MySql:
    found: MySql = request.getfixturevalue(role if version == "9.7" else f"{role}_80")
    return found


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Together:
    return Together(request, tmp_path_factory.mktemp("cases"), kafka)


@pytest.mark.parametrize(("versions", "case"), parameters(shared=True))
def test_case(versions: Versions, case: Case, together: Together) -> None:
    error = together.failure(versions, case)
    if error is not None:
        raise error


@pytest.mark.parametrize(("versions", "case"), parameters(shared=False))
def test_case_with_programs_of_its_own(
    versions: Versions,
    case: Case,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    mysql_server: MySqlFactory,
    kafka: Kafka,
) -> None:
    def server(name: str, version: str) -> MySql:
        version = "8.0" if name in case.of_80 else version
        if name not in case.servers:
            return shared_server(request, name, version)
        find = mysql_programs_80 if version == "8.0" else mysql_programs
        return mysql_server(*case.servers[name], server_id=SERVER_IDS[name], find=find)

    leader, follower = (server(*each) for each in zip(ROLES, versions, strict=True))
    name = f"{case.name}_{own_name(tmp_path)}"
    programs = Programs.make(tmp_path, (leader, follower), kafka, name=name, **case.profiles)
    shared = [server for role, server in (("leader", leader), ("follower", follower)) if role not in case.servers]
    with new_databases_dropped(*shared), CaseRun(case, leader, follower, name) as run:
        run_alone(run, programs, partial(LeaderTopic.from_sequence, kafka, name, name))
