"""Every case: its records, what the programs log, and what the follower then holds are as the file says.

A case is a file in ``tests/cases``; how one is written stands in ``tests/checks/case.py``.
"""

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

SERVER_IDS = {"leader": 41, "follower": 42}


def parameters(*, shared: bool) -> list[object]:
    found = [(path, load(path)) for path in cases()]
    names = {path: str(path.relative_to(FOLDER).with_suffix("")) for path, _ in found}
    return [
        pytest.param(case, id=names[path], marks=_of_one_worker(case)) for path, case in found if case.shared is shared
    ]


def _of_one_worker(case: Case) -> list[pytest.MarkDecorator]:
    """The mark of cases whose servers have the same options or version: one worker starts these once for all."""
    if not (case.servers or case.of_80):
        return []
    options = sorted({option for each in case.servers.values() for option in each})
    return [pytest.mark.xdist_group("8.0" if case.of_80 else f"servers {' '.join(options)}")]


@pytest.fixture(scope="module")
def together(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    leader: MySql,
    follower: MySql,
    kafka: Kafka,
) -> dict[str, BaseException | None]:
    """All shared cases of this run through one pair of programs: by name, what each failed with."""
    wanted = [item.callspec.params["case"] for item in request.session.items if "together" in item.fixturenames]
    folder = tmp_path_factory.mktemp("cases")
    programs = Programs.make(folder, (leader, follower), kafka, name=f"cases_{own_name(folder)}")
    failures: dict[str, BaseException] = {}
    runs = [CaseRun(case, leader, follower, programs.resource) for case in wanted]
    with new_databases_dropped(leader, follower):
        run_together(runs, programs, failures)
    return {case.name: failures.get(case.name) for case in wanted}


@pytest.mark.xdist_group("cases")
@pytest.mark.parametrize("case", parameters(shared=True))
def test_case(case: Case, together: dict[str, BaseException | None]) -> None:
    error = together[case.name]
    if error is not None:
        raise error


@pytest.mark.parametrize("case", parameters(shared=False))
def test_case_with_programs_of_its_own(
    case: Case, tmp_path: Path, request: pytest.FixtureRequest, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    def server(name: str) -> MySql:
        if name not in case.servers:
            found: MySql = request.getfixturevalue(f"{name}_80" if name in case.of_80 else name)
            return found
        find = mysql_programs_80 if name in case.of_80 else mysql_programs
        return mysql_server(*case.servers[name], server_id=SERVER_IDS[name], find=find)

    leader, follower = server("leader"), server("follower")
    name = f"{case.name}_{own_name(tmp_path)}"
    programs = Programs.make(tmp_path, (leader, follower), kafka, name=name, **case.profiles)
    shared = [server for role, server in (("leader", leader), ("follower", follower)) if role not in case.servers]
    with new_databases_dropped(*shared), CaseRun(case, leader, follower, name) as run:
        run_alone(run, programs, partial(LeaderTopic.from_sequence, kafka, name, name))
