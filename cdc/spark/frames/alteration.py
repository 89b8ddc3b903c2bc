"""Computes how ALTER TABLE changes a table's columns and rows, as far as the effect is certain. The server does not log
the changes of the rows. Pure.

A value is certain if records before and after the statement would contain the same JSON text for it. The values are
certain in columns that were only moved, renamed, or changed to a wider type of the same kind. In all other columns the
values are not certain; the reason is called a **doubt**.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from cdc.model.charset import text_decoder
from cdc.spark.frames.column_sql import UNKNOWN_CHARSET, ColumnSql, added_value, read_column
from cdc.spark.frames.schema_history import Columns, Statement
from cdc.sql.column_types import ColumnType, read_type
from cdc.sql.tokens import SqlReader, tokens

__all__ = ["Alteration", "Origin", "altered"]

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = {"tinytext": 255, "text": 65_535, "mediumtext": 1 << 24, "longtext": 1 << 32}
_BLOBS = {name.replace("text", "blob"): size for name, size in _TEXTS.items()}
_STRICT = frozenset({"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL"})
# Clauses that begin with these words change neither rows nor columns.
_HARMLESS = (
    ("ADD", "INDEX"), ("ADD", "KEY"), ("ADD", "UNIQUE"), ("ADD", "FULLTEXT"), ("ADD", "SPATIAL"), ("ADD", "FOREIGN"),
    ("ADD", "CHECK"), ("DROP", "INDEX"), ("DROP", "KEY"), ("DROP", "PRIMARY", "KEY"), ("DROP", "FOREIGN"),
    ("DROP", "CHECK"), ("DROP", "CONSTRAINT"), ("RENAME", "INDEX"), ("RENAME", "KEY"), ("ALTER", "INDEX"),
    ("ALTER", "CHECK"), ("ALTER", "CONSTRAINT"), ("DISABLE", "KEYS"), ("ENABLE", "KEYS"), ("FORCE",), ("ENGINE",),
    ("COMMENT",), ("AUTO_INCREMENT",), ("ROW_FORMAT",), ("ALGORITHM",), ("LOCK",), ("KEY_BLOCK_SIZE",),
    ("STATS_PERSISTENT",), ("STATS_AUTO_RECALC",), ("STATS_SAMPLE_PAGES",), ("DEFAULT", "CHARACTER", "SET"),
    ("DEFAULT", "CHARSET"), ("CHARACTER", "SET"), ("CHARSET",), ("DEFAULT", "COLLATE"), ("COLLATE",), ("ORDER", "BY"),
    ("AVG_ROW_LENGTH",), ("CHECKSUM",), ("MAX_ROWS",), ("MIN_ROWS",), ("PACK_KEYS",), ("DELAY_KEY_WRITE",),
    ("COMPRESSION",), ("ENCRYPTION",), ("REMOVE", "PARTITIONING"), ("COALESCE", "PARTITION"),
    ("REBUILD", "PARTITION"), ("REORGANIZE", "PARTITION"), ("ADD", "PARTITION"), ("WITHOUT", "VALIDATION"),
    ("WITH", "VALIDATION"),
)  # fmt: skip


_OF_PARTITIONS = ("DROP", "TRUNCATE", "EXCHANGE", "REORGANIZE", "REBUILD", "COALESCE", "ADD")


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a column's values: the former column ``name``, or the JSON text ``value``. If both are None, the
    values are not certain, and ``doubt`` is the reason. If only values that were NULL before are not certain,
    ``null_doubt`` is the reason.
    """

    name: str | None = None
    value: str | None = None
    doubt: str = ""
    null_doubt: str = ""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The effect of the ALTER at ``sequence``: the ``columns`` after it (None if unknown), and the origin of each
    column. ``doubt`` is the reason why the remaining rows or their values are not certain; it is empty if they are
    certain."""

    sequence: int
    columns: Columns | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    doubt: str = ""
    keys_changed: bool = False


def altered(
    before: Columns, statement: Statement, *, sequence: int, after: Columns | None,
    generated: Callable[[], Collection[str] | None] = frozenset,
) -> Alteration:  # fmt: skip
    """Computes how ``statement`` changes a table with the columns ``before``; ``after`` are the columns in later
    records, or None. ``generated()`` returns a set of case-folded names that includes all generated columns, or None if
    they are not known.

    If the parsed statement does not result in the columns that records contain, no value is certain (``doubt``).
    """
    try:
        table = _Table(before, statement)
        for clause in _clauses(statement):
            # A clause about partitions is the only clause of its statement. So the names after its commas are
            # partitions, not clauses.
            is_all = any(clause.comes(verb, "PARTITION") for verb in _OF_PARTITIONS)
            table.apply(clause)
            if is_all:
                break
    except (ValueError, IndexError) as error:
        return Alteration(sequence, after, doubt=f"it was not understood ({error})", keys_changed=True)
    if table.retyped:
        table.compute_again(generated())
    found = table.columns()
    if after is None:
        return Alteration(sequence, found, table.origins, table.doubt, table.keys_changed)
    if [name for name, _ in found] != [name for name, _ in after]:
        return Alteration(sequence, after, doubt="it resulted in other columns than its text shows", keys_changed=True)
    return Alteration(sequence, after, dict(table.checked(dict(after))), table.doubt, table.keys_changed)


def _clauses(statement: Statement) -> Iterator[SqlReader]:
    if not statement.exact or (statement.charset and text_decoder(statement.charset) is None):
        raise ValueError("its character set has no exact text")
    modes = statement.sql_mode
    found = tokens(
        statement.text, ansi_quotes="ANSI_QUOTES" in modes, backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes
    )
    reader = SqlReader(list(found), "")
    reader.require("ALTER")
    reader.require("TABLE")
    reader.name()
    yield from reader.clauses()


class _Table:
    """The columns of a table while the clauses of a statement are applied."""

    def __init__(self, before: Columns, statement: Statement) -> None:
        self._before = dict(before)
        self._strict = bool(statement.sql_mode & _STRICT)
        self._explicit_timestamps = statement.explicit_timestamps
        self._types = dict(before)
        self._order = [name for name, _ in before]
        self.origins = {name: Origin(name) for name, _ in before}
        self.doubt = ""
        self.keys_changed = False
        # True if a column got another type or collation, so that the values of columns computed from it may change.
        self.retyped = False
        self._defined = set[str]()  # the columns that the statement defines

    def compute_again(self, names: Collection[str] | None) -> None:
        """Notes that the server recomputes the columns ``names``, because columns in their expressions were changed. If
        ``names`` is None, the server may recompute any column that the statement does not define.
        """
        for name, origin in self.origins.items():
            recomputed = name not in self._defined if names is None else name.casefold() in names
            if origin.name is not None and recomputed:
                why = "no statement defines it, and the server computes it again if it is generated"
                doubt = why if names is None else "the server computes it of columns that were changed"
                self.origins[name] = Origin(doubt=doubt)

    def columns(self) -> Columns:
        return tuple((name, self._types[name]) for name in self._order)

    def checked(self, told: Mapping[str, str]) -> Iterator[tuple[str, Origin]]:
        """Yields the origins, with a doubt for each column whose type in records (``told``) differs from its type
        according to the statement.
        """
        for name, origin in self.origins.items():
            understood = self._types[name].replace(f"character set {UNKNOWN_CHARSET}", "")
            is_same = told[name] == self._types[name] or (
                UNKNOWN_CHARSET in self._types[name] and told[name].startswith(understood)
            )
            yield name, origin if is_same else Origin(doubt=f"its type became {told[name]}")

    def apply(self, clause: SqlReader) -> None:
        """Applies one clause. Raises ValueError for an unknown clause."""
        if not clause.items:
            return
        if any(item.word() == "BLACKHOLE" for item in clause.items):
            raise ValueError("an engine that keeps no rows")
        if any(clause.comes(*words) for words in _HARMLESS):
            self.keys_changed |= clause.peek() in ("ADD", "DROP")
        elif clause.comes("ADD", "CONSTRAINT") or clause.comes("ADD", "PRIMARY"):
            self.keys_changed = True
        elif clause.comes("ALTER"):
            return  # the clause sets a default, or whether a column is visible
        elif clause.take("ADD"):
            clause.take("COLUMN")
            self._add(clause)
        elif clause.take("DROP"):
            if clause.peek() == "PARTITION":
                self.doubt = "it drops partitions with their rows"
                return
            clause.take("COLUMN")
            self._remove(self._known(clause.identifier()))
        elif clause.take("MODIFY"):
            clause.take("COLUMN")
            column = read_column(clause)
            self._change(self._known(column.name), column)
        elif clause.take("CHANGE"):
            clause.take("COLUMN")
            old = self._known(clause.identifier())
            self._change(old, read_column(clause))
        elif clause.take("RENAME", "COLUMN"):
            old = self._known(clause.identifier())
            clause.require("TO")
            self._rename(old, clause.identifier())
        elif not clause.take("RENAME"):
            self._of_all_rows(clause)

    def _of_all_rows(self, clause: SqlReader) -> None:
        if clause.comes("PARTITION", "BY"):
            return
        if clause.comes("TRUNCATE", "PARTITION") or clause.comes("EXCHANGE", "PARTITION"):
            self.doubt = f"it {clause.peek().lower()}s a partition, and other rows are left"
            return
        if clause.comes("CONVERT", "TO"):
            charset, self.retyped = clause.items[-1].text.lower(), True
            for name, kind in self._types.items():
                if "character set" in kind:
                    self.origins[name] = Origin(doubt=f"its character set became {charset}")
            return
        raise ValueError(f"unknown clause {clause.peek()}")

    def _add(self, clause: SqlReader) -> None:
        if not clause.mark("("):
            self._put(read_column(clause))
            return
        clause.items = clause.items[:-1]  # the closing bracket
        for each in clause.clauses():
            self._put(read_column(each))

    def _put(self, column: ColumnSql) -> None:
        if any(name.casefold() == column.name.casefold() for name in self._order):
            raise ValueError(f"there is a column {column.name}")
        value = added_value(column)
        if column.type.startswith("timestamp") and column.nullable is None and not self._explicit_timestamps:
            value = None
        doubt = "" if value is not None else column.computed or "its default is not a constant that is certain"
        self.origins[column.name] = Origin(value=value, doubt=doubt)
        self._types[column.name] = column.type
        self._defined.add(column.name)
        self.keys_changed |= column.is_key
        self._place(column.name, column.place)

    def _change(self, old: str, column: ColumnSql) -> None:
        kind, origin = self._types[old], self.origins[old]
        at = self._order.index(old)
        self._remove(old)
        self._types[column.name] = column.type
        self._defined.add(column.name)
        self._order.insert(at, column.name)
        self.keys_changed |= column.is_key
        integers = {read_type(kind).name, read_type(column.type).name} <= set(_INTEGERS)
        self.retyped |= not integers or kind.endswith("unsigned") != column.type.endswith("unsigned")
        doubt = column.computed or _changes(read_type(kind), read_type(column.type), strict=self._strict)
        null_doubt = "it became NOT NULL" if column.nullable is False else origin.null_doubt
        self.origins[column.name] = Origin(doubt=doubt) if doubt else Origin(origin.name, origin.value, "", null_doubt)
        if column.place is not None:
            self._order.remove(column.name)
            self._place(column.name, column.place)

    def _rename(self, old: str, new: str) -> None:
        at, kind, origin = self._order.index(old), self._types[old], self.origins[old]
        self._remove(old)
        self._order.insert(at, new)
        self._types[new], self.origins[new] = kind, origin

    def _remove(self, name: str) -> None:
        self._order.remove(name)
        del self._types[name], self.origins[name]

    def _place(self, name: str, place: str | None) -> None:
        at = len(self._order) if place is None else self._order.index(self._known(place)) + 1 if place else 0
        self._order.insert(at, name)

    def _known(self, name: str) -> str:
        """Returns the name of a column as it is spelled in the table. Raises ValueError if there is no such column."""
        found = [each for each in self._order if each.casefold() == name.casefold()]
        if len(found) != 1:
            raise ValueError(f"no column {name}")
        return found[0]


def _changes(old: ColumnType, new: ColumnType, *, strict: bool) -> str:
    """Returns the reason why values of type ``old`` may differ in ``new``; empty if they stay the same."""
    doubt = f"its type became {new.name}"
    if old.name in _INTEGERS and new.name in _INTEGERS:
        wider = _INTEGERS.index(new.name) >= _INTEGERS.index(old.name)
        return "" if wider and old.unsigned == new.unsigned else doubt
    if old.charset and new.charset:
        return _changes_text(old, new, doubt, strict=strict)
    if old.name == new.name == "decimal":
        is_same = old.numbers[1] == new.numbers[1] and old.unsigned == new.unsigned
        return "" if is_same and old.numbers[0] <= new.numbers[0] else doubt
    if old.name in ("varbinary", *_BLOBS) and new.name in ("varbinary", *_BLOBS):
        return "" if _capacity(old) <= _capacity(new) and (old.name, new.name) != ("blob", "varbinary") else doubt
    if old.name != new.name or old.unsigned != new.unsigned:
        return doubt
    if old.name in ("binary", "vector"):
        return "" if old.numbers == new.numbers else doubt
    return "" if (old.numbers or (0,)) <= (new.numbers or (0,)) else doubt


def _changes_text(old: ColumnType, new: ColumnType, doubt: str, *, strict: bool) -> str:
    if text_decoder(old.charset or "") is None or (old.charset == "ascii" and old.charset != new.charset):
        return "" if old == new else doubt
    # In strict mode a server refuses to convert characters that the new character set lacks.
    is_known = new.charset in (old.charset, "utf8mb4") or (new.charset == UNKNOWN_CHARSET and strict)
    if not is_known:
        return f"its character set became {new.charset}"
    if old.name in ("enum", "set"):
        return "" if old.name == new.name and _keeps_texts(old, new, strict=strict) else doubt
    if old.name == new.name == "char":
        return "" if old.numbers <= new.numbers else doubt
    if old.name in ("varchar", *_TEXTS) and new.name in ("varchar", *_TEXTS):
        # In another character set, a text may need up to four times as many bytes. In strict mode the server refuses a
        # text that becomes too long.
        return "" if _capacity(old) * (1 if old.charset == new.charset or strict else 4) <= _capacity(new) else doubt
    return doubt


def _keeps_texts(old: ColumnType, new: ColumnType, *, strict: bool) -> bool:
    """Whether the existing members of an ENUM or SET stay the same, and the statement does not change whether records
    contain their texts or their numbers.

    Records contain numbers if a member of a SET is empty, or if two members are equal in the column's collation. This
    function does not know the collation, since no record contains it.
    """
    before, after = old.members, new.members or ()
    if before is None or after[: len(before)] != before or (old.name == "set" and ("" in before) != ("" in after)):
        return False
    # A server in strict mode refuses equal members, but the column may have had equal members before.
    return len({each.casefold() for each in after}) == len(after) and (strict or "".join(after).isascii())


def _capacity(kind: ColumnType) -> int:
    """Returns the approximate maximum length of values, in bytes; for a VARCHAR in characters, so that the result may
    be too low.
    """
    return (_TEXTS | _BLOBS).get(kind.name, kind.numbers[0] if kind.numbers else 0)
