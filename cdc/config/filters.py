"""Decides which databases, tables and rows are replicated and which columns are masked, according to the profile."""

import hmac
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any, NamedTuple, Self

from cdc.config.table_globs import TableGlobs, unquoted
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.sql.row_condition import RowCondition

__all__ = [
    "CHECKPOINT_DATABASE",
    "GONE",
    "HASH",
    "HASHED_BYTES",
    "HASHED_TEXTS",
    "MODES",
    "NULL",
    "SYSTEM_DATABASES",
    "FilterChange",
    "Filters",
    "Mask",
    "Masks",
    "RowFilters",
    "filtered_name",
    "swap",
]

# Masks the values of a column: each value becomes NULL, or a keyed hash of itself, or the column is left out.
#
# A hash is computed from a value's JSON text, which is the same in a row of the binlog and in a row of a table copy. So
# equal texts have equal hashes in all tables, whatever their character set is, and a change of a value is still a
# change of its hash.

HASH, NULL, GONE = "hash", "null", "gone"
MODES = (HASH, NULL, GONE)
HASHED_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
HASHED_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_FITS_ANY_TEXT = 63  # number of four-byte characters that fit into a TINYTEXT


@dataclass(frozen=True, slots=True)
class Mask:
    """The mask of a column: ``mode`` is HASH, NULL or GONE, ``key`` is the secret key of hashes."""

    mode: str
    key: bytes = field(default=b"", repr=False)

    @property
    def is_gone(self) -> bool:
        """Whether the column is left out."""
        return self.mode == GONE

    def hashed(self, text: bytes, kind: str, size: int | None) -> str:
        """Hashes a value with the JSON ``text`` (in UTF-8), and returns the JSON text of the hash. ``kind`` is the name
        of the column's type, ``size`` is the type's length in characters or bytes; None for a type without a length.
        """
        digest = hmac.digest(self.key, text, "sha256")
        if kind in HASHED_TEXTS:
            return f'{{"String":"{digest.hex()[: _FITS_ANY_TEXT if size is None else size]}"}}'
        stored = digest[:size]
        if kind == "binary" and size is not None:
            stored = stored.ljust(size, b"\0")
        return f'{{"Blob":"{b64encode(stored).decode()}"}}'


# Finds the masks of columns, which the profile names by globs ``db.table.column``.

_NAME = r"`(?:[^`]|``)+`|[^`.]+"
_COLUMN = re.compile(rf"({_NAME})\.({_NAME})\.({_NAME})")
_KEY_CHARACTERS = 16


class _Rule(NamedTuple):
    database: re.Pattern[str]
    table: re.Pattern[str]
    column: re.Pattern[str]
    glob: str  # the glob of the column, as in the profile
    mask: Mask
    key: str  # the glob of database, table and column, as in the profile

    def matches(self, database: str, table: str, column: str) -> bool:
        return bool(self.database.match(database) and self.table.match(table) and self.column.match(column))


@dataclass(frozen=True, slots=True)
class Masks:
    """The rules for masks, in the order of the profile; the first rule that matches a column decides. Names of
    databases and tables are compared as in filters. Names of columns are compared regardless of case, as in MySQL.
    """

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, object], key: str) -> Self:
        """Compiles the globs of ``columns``; ``key`` is the key of hashes. Raises UserError."""
        if HASH in columns.values() and len(key) < _KEY_CHARACTERS:
            raise UserError(
                f"a hash needs a secret key of at least {_KEY_CHARACTERS} characters",
                code="CDC-PROFILE-MASK",
                where="profile key filters.mask_key",
                hint='keep it out of the profile: mask_key = "${file:/run/secrets/mask_key}"',
            )
        return cls(tuple(_rule(glob, mode, key.encode()) for glob, mode in columns.items()))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def mask(self, database: str, table: str, column: str) -> Mask | None:
        """Returns the mask of a column; None for a column that is not masked."""
        return next((rule.mask for rule in self.rules if rule.matches(database, table, column)), None)

    def unused(self, columns: Collection[tuple[str, str, str]]) -> list[str]:
        """Returns the globs of the rules that match none of the ``columns`` (database, table, column)."""
        return [rule.key for rule in self.rules if not any(rule.matches(*each) for each in columns)]

    def may_name_removed(self, names: Collection[str], databases: Collection[str] | None = None) -> bool:
        """Whether the ``names`` in a statement may be those of a column that is left out and of its table, in one of
        the ``databases``; if these are None, the names of any such column. Names are also compared in lower case, since
        a statement has them as they were typed.
        """
        names = {*names, *map(folded, names)}
        databases = None if databases is None else {*databases, *map(folded, databases)}
        for rule in self.rules:
            if rule.mask.mode == GONE and any(map(rule.column.match, names)):
                if databases is None:
                    return True
                if any(map(rule.table.match, names)) and any(map(rule.database.match, databases)):
                    return True
        return False

    def of_table(self, database: str, table: str) -> tuple[tuple[str, str], ...]:
        """Returns the rules for a table; each rule is a glob of columns and a mode (HASH, NULL or GONE)."""
        rules = (rule for rule in self.rules if rule.database.match(database) and rule.table.match(table))
        return tuple((rule.glob, rule.mask.mode) for rule in rules)


def _rule(glob: str, mode: object, key: bytes) -> _Rule:
    found = _COLUMN.fullmatch(glob)
    if found is None:
        raise UserError(
            f"{glob!r} names no column",
            code="CDC-PROFILE-MASK",
            where="profile key filters.mask_columns",
            hint='write database, table and column, as in "shop.users.email" = "hash"; a name with a dot in backquotes',
        )
    if mode not in MODES:
        raise UserError(
            "a column can't be masked in this way",
            code="CDC-PROFILE-MASK",
            where=f"profile key filters.mask_columns, {glob!r}",
            hint=f"one of {', '.join(MODES)}",
        )
    database, table, column = map(unquoted, found.groups())
    patterns = re.compile(translate(database)), re.compile(translate(table)), re.compile(translate(column), re.I)
    return _Rule(*patterns, column.lower(), Mask(str(mode), key if mode == HASH else b""), glob)


# Finds the conditions of row filters, which the profile assigns to globs ``db.table``.

_GLOB_OF_LISTED = re.compile(r"((?:`(?:[^`]|``)*`|[^`])*?): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RowFilters:
    """The row filters of the profile: each is a glob over ``db.table``, as in the profile and compiled, and the
    condition of the rows that pass.
    """

    filters: tuple[tuple[str, TableGlobs, RowCondition], ...] = ()

    @classmethod
    def of(cls, rows: Mapping[str, object]) -> Self:
        """Compiles the conditions, by glob. Raises UserError."""
        globs = {glob: TableGlobs.of([glob], key=_ROWS, names_database=True) for glob in rows}
        return cls(tuple((glob, globs[glob], _condition(glob, text)) for glob, text in rows.items()))

    @property
    def listed(self) -> list[str]:
        """The filters as texts, sorted: the same for filters that differ only in spelling and order."""
        return sorted(f"{glob}: {condition}" for glob, _, condition in self.filters)

    def condition(self, database: str, names: Collection[str]) -> RowCondition | None:
        """Returns the condition of a table, joined by AND if several globs match one of its ``names``; None if none
        does.
        """
        found = [each for _, globs, each in self.filters if any(globs.match(database, name) for name in names)]
        return RowCondition.joined(found) if found else None

    def unused(self, tables: Collection[tuple[str, str]]) -> list[str]:
        """Returns the globs that match none of the ``tables``."""
        return [glob for glob, globs, _ in self.filters if not any(globs.match(*table) for table in tables)]


_ROWS = "filters.rows"


def _condition(glob: str, text: object) -> RowCondition:
    where = f"profile key {_ROWS}, {glob!r}"
    hint = "write terms with AND between them, such as region = 'EU' AND amount >= 10"
    listed = _GLOB_OF_LISTED.fullmatch(f"{glob}: ")
    if not isinstance(text, str) or listed is None or listed[1] != glob:
        raise UserError("not a glob of tables with a condition", code="CDC-PROFILE-ROWS", where=where, hint=hint)
    try:
        return RowCondition.parse(text)
    except ValueError as error:
        raise UserError(f"not a condition: {error}", code="CDC-PROFILE-ROWS", where=where, hint=hint) from None


SYSTEM_DATABASES = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
CHECKPOINT_DATABASE = "cdc"
_KEYS = ("include_dbs", "exclude_dbs", "include_tables", "exclude_tables", "shadow_tables")
_PLACE = "{table}"


def filtered_name(action: str, name: str | None) -> str | None:
    """Returns the name by which the filters decide about an object that a statement affects; None if they decide only
    by the name of its database.

    ``action`` is the ``action`` of an Effect. Filters can name tables and views; for an index they use the name of its
    table.
    """
    return name if action.endswith(("Table", "View", "Index")) else None


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    parts = [translate(unquoted(glob)) for glob in globs]
    return re.compile("|".join(parts)) if parts else None


@dataclass(frozen=True, slots=True)
class Filters:
    """Globs over database names and over ``db.table`` (module table_globs), case-sensitive. ``folded`` returns the
    filters for a server with ``lower_case_table_names = 1``.

    At most one list of databases and one list of tables is set, either included or excluded ones; without a list,
    everything passes. The server's own databases never pass, since each server keeps its own. ``shadow_tables`` are
    patterns for names of shadow tables, in which tools build and keep other versions of a table. ``{table}`` stands for
    the table's name. A shadow table passes if its table passes.

    ``mask_columns`` maps globs ``db.table.column`` to the way in which the producer masks these columns, ``mask_key``
    is the key of hashes; ``masks`` are compiled from both. The result of ``listed`` does not contain masks.

    ``rows`` maps globs ``db.table`` to conditions: of the tables that match, only the rows pass for which the condition
    is true; ``row_filters`` are compiled from it.
    """

    include_dbs: tuple[str, ...] = ()
    exclude_dbs: tuple[str, ...] = ()
    include_tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = ()
    shadow_tables: tuple[str, ...] = ()
    mask_columns: dict[str, str] = field(default_factory=dict, hash=False)
    mask_key: str = field(default="", repr=False)
    rows: dict[str, str] = field(default_factory=dict, hash=False)
    row_filters: RowFilters = field(init=False, repr=False, compare=False, default=RowFilters())
    masks: Masks = field(init=False, repr=False, compare=False, default=Masks())
    _compiled: dict[str, re.Pattern[str] | None] = field(init=False, repr=False, compare=False, default_factory=dict)
    _tables: dict[str, TableGlobs | None] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for kind in ("dbs", "tables"):
            if getattr(self, f"include_{kind}") and getattr(self, f"exclude_{kind}"):
                raise UserError(
                    f"both include_{kind} and exclude_{kind} are set",
                    code="CDC-PROFILE-EXCLUSIVE-KEYS",
                    where="profile key filters",
                    hint="keep one of the two",
                )
        for pattern in self.shadow_tables:
            if pattern.count(_PLACE) != 1 or pattern == _PLACE or set("*?[.`") & set(pattern):
                raise UserError(
                    f"{pattern!r} is no pattern of a shadow table's name",
                    code="CDC-PROFILE-SHADOW-TABLES",
                    where="profile key filters.shadow_tables",
                    hint='write {table} once, for the table\'s name, and the rest as it is: "_{table}_gho"',
                )
        for key in ("include_dbs", "exclude_dbs"):
            self._compiled[key] = _pattern(getattr(self, key))
        for key in ("include_tables", "exclude_tables"):
            globs = getattr(self, key)
            self._tables[key] = TableGlobs.of(globs, key=f"filters.{key}", names_database=True) if globs else None
        object.__setattr__(self, "masks", Masks.of(self.mask_columns, self.mask_key))
        object.__setattr__(self, "row_filters", RowFilters.of(self.rows))
        included = self._tables["include_tables"]
        their = map(translate, included.databases) if included else ()
        self._compiled["their_dbs"] = re.compile("|".join(their)) if included else None

    def folded(self) -> Self:
        """Returns the filters for a server that stores names in lower case; their globs are in lower case."""
        lists = {key: tuple(map(folded, getattr(self, key))) for key in _KEYS}
        masked = {folded(glob): mode for glob, mode in self.mask_columns.items()}
        rows: dict[str, str] = {}
        for glob, condition in self.rows.items():
            # Two globs may become one; then both conditions must be true, as before.
            known = rows.get(folded(glob))
            rows[folded(glob)] = condition if known is None else f"{known} AND {condition}"
        return type(self)(**lists, mask_columns=masked, mask_key=self.mask_key, rows=rows)

    def listed(self) -> dict[str, list[str]]:
        """Returns the lists that are not empty, by key. The lists are sorted, so that equal filters have equal
        results.
        """
        lists = {key: getattr(self, key) for key in _KEYS} | {"rows": self.row_filters.listed}
        return {key: sorted(set(globs)) for key, globs in lists.items() if globs}

    def as_listed(self, lists: Mapping[str, Iterable[str]]) -> Self:
        """Returns the filters of which ``listed`` has returned ``lists``, with the masks of these filters."""
        globs: dict[str, Any] = {key: tuple(listed) for key, listed in lists.items() if key != "rows"}
        pairs = [_GLOB_OF_LISTED.fullmatch(each) for each in lists.get("rows", ())]
        rows = {found[1]: found[2] for found in pairs if found is not None}
        return type(self)(**globs, mask_columns=self.mask_columns, mask_key=self.mask_key, rows=rows)

    def narrows(self, before: "Filters") -> bool:
        """Whether it is certain, from the lists alone, that these filters pass no object that ``before``
        did not pass.
        """
        if set(before.shadow_tables) != set(self.shadow_tables) or before.row_filters.listed != self.row_filters.listed:
            return False
        for kind in ("dbs", "tables"):
            was, is_ = set(getattr(before, f"include_{kind}")), set(getattr(self, f"include_{kind}"))
            if was and not (is_ and is_ <= was):
                return False
            if not set(getattr(before, f"exclude_{kind}")) <= set(getattr(self, f"exclude_{kind}")):
                return False
        return True

    def wants_database(self, database: str) -> bool:
        """Whether an object of this database may pass. The filters may still leave out some of its tables."""
        if database in SYSTEM_DATABASES:
            return False
        include, exclude = self._compiled["include_dbs"], self._compiled["exclude_dbs"]
        their = self._compiled["their_dbs"]
        if their is not None and their.match(database) is None:
            return False
        if include is not None:
            return include.match(database) is not None
        return exclude is None or exclude.match(database) is None

    def wants(self, database: str, name: str | None) -> bool:
        """Whether a table or view passes. If ``name`` is None, whether an object of the database may pass."""
        return self.wants_database(database) if name is None else self.wants_table(database, name)

    def wants_table(self, database: str, table: str) -> bool:
        """Whether the changes of this table pass the filters."""
        if not self.wants_database(database):
            return False
        include, exclude = self._tables["include_tables"], self._tables["exclude_tables"]
        names = self.names_of(table)
        if include is not None:
            return any(include.match(database, name) for name in names)
        return exclude is None or not any(exclude.match(database, name) for name in names)

    def mask(self, database: str, table: str, column: str) -> Mask | None:
        """Returns the mask of a column; None for a column that is not masked. The columns of a shadow table have the
        masks of its table.
        """
        if not self.masks:
            return None
        found = (self.masks.mask(database, name, column) for name in self.names_of(table))
        return next((mask for mask in found if mask is not None), None)

    def masks_of(self, database: str, table: str) -> frozenset[tuple[str, str]]:
        """Returns the rules that mask columns of a table; each is a glob of columns and a mode (HASH, NULL or GONE)."""
        names = self.names_of(table) if self.masks else ()
        return frozenset(rule for name in names for rule in self.masks.of_table(database, name))

    def names_of(self, table: str) -> tuple[str, ...]:
        """Returns the table's name, and behind it the tables that may have this table as their shadow table."""
        return (table, *self._shadowed(table))

    def removes(self, database: str, table: str, column: str) -> bool:
        """Whether a column is left out of the table."""
        mask = self.mask(database, table, column)
        return mask is not None and mask.is_gone

    def removes_any(self, database: str, table: str) -> bool:
        """Whether columns may be left out of a table."""
        return any(mode == GONE for _, mode in self.masks_of(database, table))

    def condition(self, database: str, table: str) -> RowCondition | None:
        """Returns the condition of the rows that pass; None if all rows of the table pass. A shadow table has the
        condition of its table.
        """
        if not self.rows:
            return None
        return self.row_filters.condition(database, self.names_of(table))

    def _shadowed(self, table: str) -> Iterator[str]:
        """Yields the tables that may have this table as their shadow table, according to its name."""
        for pattern in self.shadow_tables:
            before, _, after = pattern.partition(_PLACE)
            name = table.removeprefix(before).removesuffix(after)
            if name and f"{before}{name}{after}" == table:
                yield name


@dataclass(frozen=True, slots=True)
class FilterChange:
    """A change of the filters. It selects the objects that pass ``after`` but did not pass ``before``, and the tables
    of which other rows pass.
    """

    before: Filters
    after: Filters

    def wants_database(self, database: str) -> bool:
        """Whether an object of this database may pass the new filters, while no object of it passed the old filters."""
        return self.after.wants_database(database) and not self.before.wants_database(database)

    def wants_table(self, database: str, table: str) -> bool:
        """Whether the changes of this table or view pass the new filters, but did not pass the old filters, or other
        rows of it pass.
        """
        if not self.after.wants_table(database, table):
            return False
        others = self.before.condition(database, table) != self.after.condition(database, table)
        return others or not self.before.wants_table(database, table)


_Name = tuple[str, str]


class Swap(NamedTuple):
    """A swap of tables, with which a tool such as gh-ost replaces a table by a new version of it.

    ``table`` is the name of the replaced table, and ``new`` is the former name of its new version, both as (database,
    name). ``setting`` is the setting of the profile with which the filters pass the tool's tables.
    """

    table: _Name
    new: _Name
    setting: str


def swap(renames: Iterable[tuple[_Name, _Name]]) -> Swap | None:
    """Returns the swap that a statement with these ``renames`` (old name, new name) performs; None if it performs no
    swap.

    A swap moves a table away and moves another table to its name. All tables must be in one database, and the other
    names must contain the table's name.
    """
    before = {after: name for name, after in renames}
    both = before.keys() & set(before.values())
    if len(both) != 1:
        return None
    ((database, table),) = both
    others = sorted((before.keys() | set(before.values())) - both)
    if not all(there == database and table in name for there, name in others):
        return None
    patterns = (f'"{name.replace(table, "{table}", 1)}"' for _, name in others)
    return Swap((database, table), before[database, table], f"filters.shadow_tables = [{', '.join(patterns)}]")
