import shlex

import pytest

from cdc.config.table_globs import TableGlobs, copy_command, named, table_named

NAMES = ["orders", "t; touch x", "$(touch x)", "it's", "a`b", "my.db", "t*", "[ab]", "a b", '"', "ü", "a?", "-x"]


@pytest.mark.parametrize("database", NAMES)
@pytest.mark.parametrize("table", NAMES)
def test_a_command_names_one_table_to_a_shell_whatever_it_is_called(database: str, table: str) -> None:
    *words, glob = shlex.split(copy_command((database, table)))
    assert words == ["cdc-producer", "PROFILE", "--copy"]
    assert not glob.startswith("-")
    globs = TableGlobs.of([glob], key="--copy", names_database=True)
    assert [each for each in NAMES if globs.match(database, each)] == [table]
    assert [each for each in NAMES if globs.match(each, table)] == [database]
    assert table_named(named(database, table)) == (database, table)


def test_each_table_has_an_option() -> None:
    assert copy_command(("a", "b"), ("c", "d e")) == "cdc-producer PROFILE --copy a.b --copy 'c.d e'"


@pytest.mark.parametrize("text", ["t", "a.b.c", "", ".", "`a`b.c"])
def test_other_texts_name_no_table(text: str) -> None:
    assert table_named(text) is None
