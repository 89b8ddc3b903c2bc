"""Dumps loaded into a leader, and taken of a follower, with the pair and a replica of MySQL's own beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.clients.beside import Beside, execute
from tests.clients.dumps import Dumps
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]

ORIGIN = Path(__file__).parent / "data/origin.sql"
PLAIN = ("big", "parts", "log", "numbers", "bytes", "parent", "child")  # tables that files of text can hold
EVERYTHING = ["--routines", "--triggers", "--events"]


@pytest.fixture
def leader(mysql_server: MySqlFactory) -> MySql:
    return mysql_server("--secure-file-priv=", server_id=1)  # mysqldump --tab has the server write files


@pytest.fixture
def others(mysql_server: MySqlFactory) -> tuple[MySql, MySql]:
    return mysql_server("--secure-file-priv=", server_id=2), mysql_server(server_id=3)


def by_text(*options: str) -> Callable[[Dumps, str, Path], None]:
    """One file with everything, which ``mysql`` executes in the new database."""

    def copy(dumps: Dumps, database: str, folder: Path) -> None:
        execute(dumps.server, f"CREATE DATABASE {database}")
        dumps.load(dumps.dump(*options, "origin"), database)

    return copy


def over_itself(dumps: Dumps, database: str, folder: Path) -> None:
    """The database is dropped, and made again, under its own name."""
    text = dumps.dump("--opt", "--add-drop-database", *EVERYTHING, "--databases", "origin")
    dumps.load(text)
    execute(dumps.server, f"CREATE DATABASE {database}")
    dumps.load(dumps.dump("--opt", "origin"), database)


def by_files(dumps: Dumps, database: str, folder: Path) -> None:
    """A file of SQL and one of tab-separated values a table; these have no place for documents and shapes."""
    dumps.dump(f"--tab={folder}", "origin", *PLAIN)
    execute(dumps.server, f"CREATE DATABASE {database}")
    for file in folder.glob("*.sql"):
        dumps.load(b"SET foreign_key_checks = 0;\n" + file.read_bytes(), database)
    files = [str(folder / f"{table}.txt") for table in PLAIN]
    dumps.mysqlimport("--local", "--default-character-set=binary", "--use-threads=2", database, *files)


def by_xml(dumps: Dumps, database: str, folder: Path) -> None:
    """LOAD XML into tables that are there."""
    execute(dumps.server, f"CREATE DATABASE {database}")
    dumps.load(dumps.dump("--no-data", "origin", *PLAIN), database)
    for table in PLAIN[:3]:
        file = folder / f"{table}.xml"
        file.write_bytes(dumps.dump("--xml", "origin", table))
        order = f"LOAD XML LOCAL INFILE '{file}' INTO TABLE {table}"
        dumps.load(order.encode(), "--local-infile", database)


def by_mydumper(dumps: Dumps, database: str, folder: Path) -> None:
    """Without the routines: Debian's mydumper 0.10 takes a comment for their character set, with MySQL 9."""
    options = ["--triggers", "--rows=500", "--threads=2"]
    dumps.mydumper("mydumper", "--database=origin", f"--outputdir={folder}", *options)
    options = [f"--directory={folder}", "--enable-binlog", "--threads=2"]
    dumps.mydumper("myloader", "--source-db=origin", f"--database={database}", *options)


FORMS = {
    "mysqldump": by_text(),
    "mysqldump --single-transaction --source-data=2": by_text("--single-transaction", "--source-data=2", *EVERYTHING),
    "mysqldump --opt --add-drop-database": over_itself,
    "mysqldump --hex-blob --skip-extended-insert --complete-insert": by_text(
        "--hex-blob", "--skip-extended-insert", "--complete-insert", "--no-autocommit", "--skip-tz-utc", "--replace"
    ),
    "mysqldump --tab, mysqlimport": by_files,
    "mysqldump --xml, LOAD XML": by_xml,
    "mydumper, myloader": by_mydumper,
}


def test_dumps_loaded_into_the_leader(tmp_path: Path, leader: MySql, others: tuple[MySql, MySql], kafka: Kafka) -> None:
    dumps = Dumps(leader)
    with Beside.running(tmp_path, leader, others, kafka, name="dumps") as beside:
        execute(leader, "CREATE DATABASE origin")
        dumps.load(ORIGIN.read_bytes(), "origin")
        beside.judge("the database that is dumped", "origin")
        for number, (form, copy) in enumerate(FORMS.items()):
            folder = tmp_path / f"dump{number}"
            folder.mkdir()
            copy(dumps, f"copy{number}", folder)
            beside.judge(form, "origin", f"copy{number}")
            copied, wanted = rows(leader, f"copy{number}"), rows(leader, "origin")
            # What these make of bytes, zero dates, NULL and invisible columns is their own business.
            if copy in (by_files, by_xml, by_mydumper):
                copied, wanted = ({"big": len(those["big"])} for those in (copied, wanted))
            assert copied == wanted, form
        execute(leader, "CREATE DATABASE of_follower")
        dumps.load(
            Dumps(others[0]).dump("--single-transaction", "--source-data=2", *EVERYTHING, "origin"), "of_follower"
        )
        beside.judge("mysqldump --source-data=2 of the follower, into the leader", "origin", "of_follower")
        assert rows(leader, "of_follower") == rows(leader, "origin")
    beside.audit()


def rows(server: MySql, database: str) -> dict[str, Any]:
    found = content(server, database)
    return {name: thing["rows"] for name, thing in found.items() if isinstance(thing, dict) and "rows" in thing}
