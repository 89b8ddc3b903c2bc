"""The cache of the follower's table definitions has a limited size, however many there are, and a limited age."""

import pytest

from cdc.config.profile import load
from cdc.consumer.follower import schema_cache
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.triggers import Triggers
from cdc.model.names import Uri
from tests.harness.topic import Stage

pytestmark = pytest.mark.integration


def test_tables_are_forgotten_when_there_are_too_many(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_cache, "_MOST_COLUMNS", 5)
    one, two, three = (Uri("srv", stage.name, name) for name in ("one", "two", "three"))
    with stage.follower.root() as root, root.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {stage.name}")
        for name in ("one", "two", "three"):
            cursor.execute(f"CREATE TABLE {stage.name}.{name} ({name} INT, computed INT AS ({name} + 1))")
    with Session(load(stage.profile).database) as session:
        session.connect()
        passes = lambda uri: True  # noqa: E731
        tables = SchemaCache(session, Triggers(session, drop=False, passes=passes), passes=passes)
        for table in (one, two):
            assert tables.shape(table).columns == {table.table}
        assert tables.know([one, two])
        assert tables.shape(three).columns == {"three"}
        assert [tables.know([table]) for table in (one, two, three)] == [False, False, True]
        assert tables.shape(two).columns == {"two"}
        assert tables.know([two, three])
        tables.forget()
        assert not tables.know([two])
        assert tables.shape(two).definitions == {"two": "int"}
        # Another client alters a table, and the leader has no statement for hours.
        with stage.follower.root() as root, root.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {stage.name}.two MODIFY two DECIMAL(5,1)")
        assert tables.know([two])
        monkeypatch.setattr(schema_cache, "_OLDEST_SECONDS", 0)
        assert not tables.know([two])
        assert tables.shape(two).definitions == {"two": "decimal(5,1)"}
