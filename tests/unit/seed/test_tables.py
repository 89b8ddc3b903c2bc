"""Which tables a seed loads, and which it refuses by name."""

from cdc.model.position import Position
from cdc.model.record import Record, Uri
from cdc.seed.tables import Part, parts_of
from cdc.spark.ddl.lineage import Act
from cdc.spark.frames.schema_history import History, Statement, Told

T, OTHER = ("d", "t"), ("d", "other")
COLUMNS = (("id", "int"), ("n", "int"))


class Stream:
    """Statements and what records tell, by the sequence at which each comes."""

    def __init__(self) -> None:
        self._acts: list[Act] = []
        self._told: list[Told] = []
        self._records: dict[int, Record] = {}
        self._next = 0

    def run(self, text: str, *effects: tuple[str, tuple[str, str]]) -> "Stream":
        at, self._next = self._next, self._next + 1
        affects = tuple({"action": action, "uri": str(Uri("r", *name))} for action, name in effects)
        self._acts += [Act(at, place, each["action"], each["uri"], text=text) for place, each in enumerate(affects)]
        self._records[at] = Record(
            Uri("r", "d"), at, Position("f", at), f"t:{at}", 0, True, 7, "Query", text,
            context={"database": "d", "charset": "utf8mb4"}, affects=affects,
        )  # fmt: skip
        return self

    def rows(
        self, name: tuple[str, str] = T, columns: tuple[tuple[str, str], ...] = COLUMNS, *, key: str = "id"
    ) -> "Stream":
        self._told.append(Told(name, self._next, columns, (key,) if key else None))
        self._next += 1
        return self

    def parts(
        self, *, but: tuple[str, str] = ("", ""), newest: dict[tuple[str, str], int] | None = None
    ) -> tuple[list[Part], list[str]]:
        told = {at: Statement(each.query, frozenset(), "utf8mb4", True) for at, each in self._records.items()}
        history = History(tuple(self._acts), told, tuple(self._told), silent_cascades=False)
        found, refused = parts_of(
            history, self._records, self._next - 1, newest=newest or {}, resource="r",
            passes=lambda uri: (uri.database, uri.table) != but,
        )  # fmt: skip
        assert all(each.hint for each in refused)
        return found, [each.what for each in refused]


def created(columns: str = "id INT PRIMARY KEY, n INT") -> Stream:
    return (
        Stream()
        .run("CREATE DATABASE d", ("CreateDatabase", ("d", "x")))
        .run(f"CREATE TABLE t ({columns})", ("CreateTable", T))
    )


def test_a_table_is_loaded_as_it_was_at_each_place() -> None:
    longer = (*COLUMNS, ("more", "int"))
    stream = created().rows().run("ALTER TABLE t ADD more INT DEFAULT (1 + 1)", ("AlterTable", T)).rows(T, longer)
    found, refused = stream.parts()
    assert refused == []
    assert [(each.columns, each.known) for each in found if each.columns] == [
        (("id", "n"), (0,)), (("id", "n", "more"), (0,)),
    ]  # fmt: skip


def test_a_table_without_rows_may_not_have_any() -> None:
    found, refused = created().parts()
    assert (refused, {each.refused for each in found}) == ([], {"its columns are in no record"})


def test_a_table_of_which_there_are_rows_alone_is_refused() -> None:
    """But not one that was dropped or renamed after its newest row, nor one that the filters leave out."""
    old, gone, was = ("d", "old"), ("d", "gone"), ("d", "was")
    stream = (
        created().rows().run("DROP TABLE gone", ("DropTable", gone)).run("RENAME TABLE was TO t2", ("RenameTable", was))
    )
    newest = {T: 2, old: 2, gone: 2, was: 2}
    assert stream.parts(newest=newest)[1] == [
        "the stream has rows of the table, but nothing that describes its columns"
    ]
    assert stream.parts(newest=newest, but=old)[1] == []
    assert stream.parts(newest={gone: 9}, but=old)[1] != []


def test_numbered_rows_are_refused() -> None:
    found = (("n", "int"), ("id", "int"))
    stream = created("n INT NOT NULL PRIMARY KEY").rows(T, (("n", "int"),), key="n")
    stream.run("ALTER TABLE t ADD id INT AUTO_INCREMENT UNIQUE", ("AlterTable", T)).rows(T, found, key="n")
    assert stream.parts()[1] == ["the statement at sequence 3 numbered rows of that moment, and a seed has other rows"]
    assert stream.parts(but=T) == ([], [])


def test_exchanged_rows_are_refused_also_where_only_the_other_table_had_some() -> None:
    stream = created().run("CREATE TABLE other (id INT PRIMARY KEY, n INT)", ("CreateTable", OTHER)).rows(OTHER)
    stream.run("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE other", ("AlterTable", T), ("AlterTable", OTHER)).rows(T)
    what = " ".join(stream.parts()[1])
    assert "the statement at sequence 4 exchanged rows of two tables" in what


def test_exchanged_rows_are_refused_where_no_record_names_the_table_that_has_them_now() -> None:
    stream = created().run("CREATE TABLE other (id INT PRIMARY KEY, n INT)", ("CreateTable", OTHER)).rows(OTHER)
    stream.run("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE other", ("AlterTable", T), ("AlterTable", OTHER))
    stream.run("DROP TABLE other", ("DropTable", OTHER))
    assert stream.parts()[1] == ["the statement at sequence 4 exchanged rows of two tables"]
    assert stream.run("TRUNCATE t", ("TruncateTable", T)).parts()[1] == []


def test_a_table_without_a_key_is_known_by_the_same_columns_only() -> None:
    longer = (*COLUMNS, ("more", "int"))
    stream = created("id INT, n INT").rows(key="").run("ALTER TABLE t ADD more INT", ("AlterTable", T))
    assert stream.rows(T, longer, key="").parts()[1] == [
        "the table has no key, and an ALTER changed its columns after rows were written"
    ]


def test_columns_that_may_be_numbered_keep_their_order() -> None:
    first = (("n", "int"), ("id", "int"))
    stream = created("n INT, id INT AUTO_INCREMENT PRIMARY KEY").rows(T, first)
    stream.run("ALTER TABLE t MODIFY n INT AFTER id, ADD more BIGINT", ("AlterTable", T))
    found, refused = stream.rows(T, (("id", "int"), ("n", "int"), ("more", "bigint"))).parts()
    assert refused == []
    assert [each.numbers for each in found if each.columns] == [(1, 0, -1), (0, 1, 2)]
