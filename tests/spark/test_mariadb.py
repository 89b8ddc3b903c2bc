"""An audit of a MariaDB leader and its MySQL follower."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import maria_db
from cdc.spark import table
from tests.harness.mariadb import TYPES, VALUES, logged_gtids, on, rows
from tests.harness.pair import Pair
from tests.harness.programs import own_name, run_well
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration


def test_copied_rows_of_all_types_are_equal_and_a_foreign_write_is_found_and_repaired(
    spark: SparkSession, kafka: Kafka, mysql_server: MySqlFactory, tmp_path: Path
) -> None:
    leader = maria_db(tmp_path / "maria", server_id=7).start()
    try:
        pair = Pair.make(tmp_path, leader, mysql_server(server_id=2), kafka, name=own_name(tmp_path))
        pair.on_leader(
            "CREATE DATABASE maria",
            "USE maria",
            "SET sql_mode = ''",
            TYPES,
            VALUES,
            "FLUSH BINARY LOGS",
        )
        with on(leader) as cursor:
            cursor.execute("SHOW MASTER STATUS")
            cursor.execute(f"PURGE BINARY LOGS TO '{cursor.fetchone()[0]}'")
        pair.replicate()  # the stream begins with a copy
        pair.on_leader(
            "USE maria",
            "SET sql_mode = ''",
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            """INSERT INTO t VALUES (1, '{"a":  1}'), (2, '[]')""",
            "ALTER TABLE t ADD x INT DEFAULT 3, ADD i INET6 DEFAULT '::1'",
            "CREATE TABLE own (u UUID PRIMARY KEY, i INET4, c TEXT COMPRESSED)",
            "INSERT INTO own SELECT UUID(), '1.2.3.4', REPEAT('x', seq) FROM seq_100_to_120",
            "DELETE FROM t WHERE id = 2",
            "SET gtid_domain_id = 5",
            "UPDATE types SET v = 'x' WHERE id = 1",
        )
        pair.replicate()
        pair.on_follower("UPDATE maria.t SET x = 77 WHERE id = 1", "UPDATE maria.own SET i = '1.2.3.5', c = '' LIMIT 2")
        found = pair.audit(spark, tmp_path / "report")
        run_well("cdc-repair", pair.source, "--report", tmp_path / "report")
        pair.replicate()
        again = pair.audit(spark, tmp_path / "again")
        assert rows(pair.follower) == rows(pair.leader)
        gtid = logged_gtids(leader)[-3]  # before the last two transactions
        assert table(spark, pair.source, "maria.t", at=gtid).count() == 2
    finally:
        leader.kill()
    assert found.reasons == []
    tables = [("own", 21, 2), ("t", 1, 1), ("types", 2, 0)]
    assert [(each.table, each.leader_rows, each.different) for each in found.tables] == tables
    assert found.drifted_by_cause == {"foreign write": 3}
    assert (found.schema_drift, found.foreign_writes) == (0, 2)
    assert (again.verdict, again.reasons, again.drifted_rows) == ("no drift", [], 0)
