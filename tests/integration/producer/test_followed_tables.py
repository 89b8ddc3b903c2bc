"""The tables from which changes cascade to a copied table without a trace in the leader's binlog."""

import pytest

from cdc.producer.copy.definition import followed, read_definition
from cdc.sandbox.server.mysql import MySql
from tests.harness.mariadb import on

pytestmark = pytest.mark.integration


def test_tables_with_foreign_keys_follow_those_above_them(mariadb: MySql) -> None:
    with on(mariadb) as cursor:
        cursor.execute("CREATE DATABASE followed")
        try:
            cursor.execute("CREATE TABLE followed.a (id INT PRIMARY KEY)")
            for name, action, parent in (
                ("b", "ON DELETE CASCADE", "a"),
                ("c", "ON UPDATE SET NULL", "b"),
                ("d", "", "a"),
            ):
                key = f"FOREIGN KEY (p) REFERENCES followed.{parent} (id) {action}"
                cursor.execute(f"CREATE TABLE followed.{name} (id INT PRIMARY KEY, p INT, {key})")
            found = {}
            for name in "abcd":
                table = read_definition(cursor.connection, "followed", name)
                found[name] = {above for _, above in followed(cursor, table)}
        finally:
            cursor.execute("DROP DATABASE followed")
    assert found == {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": set()}
