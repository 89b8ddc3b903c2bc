"""The condition for a range of a key's values, evaluated by SQLite, whose operators bind as MySQL's."""

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from cdc.sql.key_range import keys_condition, range_condition

_KEYS = st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[st.integers(0, 3)] * width), min_size=2))


@given(keys=_KEYS, bounds=st.tuples(st.booleans(), st.booleans()))
def test_the_rows_in_the_range_are_those_of_a_comparison_of_tuples(
    keys: list[tuple[int, ...]], bounds: tuple[bool, bool]
) -> None:
    after, through = (keys[0] if bounds[0] else None), (keys[1] if bounds[1] else None)
    columns = [f"c{number}" for number in range(len(keys[0]))]
    condition = range_condition(columns, after and [*map(str, after)], through and [*map(str, through)])
    expected = sorted(key for key in keys if (after is None or key > after) and (through is None or key <= through))
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE t ({', '.join(columns)})")
    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", keys)
    found = sorted(database.execute(f"SELECT * FROM t WHERE {condition}").fetchall())
    database.close()
    assert found == expected


@given(keys=_KEYS, count=st.integers(1, 2))
def test_the_rows_with_some_keys(keys: list[tuple[int, ...]], count: int) -> None:
    columns = [f"c{number}" for number in range(len(keys[0]))]
    condition = keys_condition(columns, [[*map(str, key)] for key in keys[:count]])
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE t ({', '.join(columns)})")
    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", keys)
    found = sorted(database.execute(f"SELECT * FROM t WHERE {condition}").fetchall())
    assert database.execute(f"SELECT * FROM t WHERE c0 < 0 AND {condition}").fetchall() == []
    database.close()
    assert found == sorted(key for key in keys if key in keys[:count])
