"""Manages the folder of a lake: its lock, its state, the list of its tables for readers, and the names of its folders.

The state contains the sequence of all tables, and the offsets in the topics at which the next records begin. The state
is replaced as a whole, after all tables were written. If a run is killed before that, the next run begins where the
killed run began, and each table's own note shows which records are in the table already.

Names of databases and tables become names of folders that every system and every reader accepts. Letters, digits, ``_``
and ``-`` stay; any other character becomes ``~``, its code in hexadecimal digits, and ``~``. No folder's name begins
with ``_`` or ``.``, since readers of Parquet ignore such folders, and no name contains ``.``, ``=`` or ``%``, which
have a meaning in paths. So the lake's own files, whose names begin with or contain these characters, never clash with a
table's folder.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cdc.errors import PromiseError, UserError
from cdc.lake.history_text import NOTHING, from_tree, to_tree
from cdc.spark.ddl.lineage import Name
from cdc.spark.folders.folder import Folder, InUseError
from cdc.spark.frames.schema_history import History

__all__ = [
    "CHANGES",
    "DROPPED",
    "MANIFEST",
    "Held",
    "LakeFolder",
    "State",
    "encoded",
    "folder",
    "quoted",
    "unfit",
    "version_folder",
]

_OTHER = re.compile(r"[^A-Za-z0-9_-]|^_")
_LONGEST = 120  # characters of an encoded MySQL name; longer names end with a hash


def folder(database: str, table: str) -> str:
    """The folder of a table, relative to the folder of the lake."""
    return f"{encoded(database)}/{encoded(table)}"


def encoded(name: str) -> str:
    """Encodes the ``name`` of a database or table as the name of a folder."""
    text = _OTHER.sub(lambda match: f"~{ord(match[0]):x}~", name)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}~~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def version_folder(version: int) -> str:
    """The folder of a version's rows in plain Parquet, relative to the folder of the table."""
    return f"_v{version}"


def quoted(name: str) -> str:
    """Quotes the name of a column for Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def unfit(columns: Sequence[str], reserved: Collection[str], in_files: Callable[[str], str] = str) -> str:
    """The reason why a format does not support these ``columns``; empty if it does.

    The reason is that some names are ``reserved``, or that Spark or the format's files (``in_files``) use the same name
    for two columns.
    """
    if taken := [name for name in columns if name.lower() in reserved]:
        return f"the format has columns of its own that are called so: {', '.join(taken)}"
    for written in (str.lower, _ignoring_case, in_files):
        first: dict[str, str] = {}
        for name in columns:
            if (other := first.setdefault(written(name), name)) != name:
                return f"the names of two columns become one: {other}, {name}"
    return ""


def _ignoring_case(name: str) -> str:
    """Removes the case of ``name``: names with the same result are equal for Spark (Java's ``equalsIgnoreCase``), such
    as ``ı`` and ``i``.
    """
    upper = (each.upper() if len(each.upper()) == 1 else each for each in name)
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in upper)


MANIFEST, DROPPED, CHANGES = "lake.json", "_dropped", "_history"
_OWN, _STATE, _LOCK = "_cdc", "state.json", "lock"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Held:
    """A table of the lake: its ``name``, its ``folder`` relative to the lake's folder, and its newest ``version``."""

    name: Name
    folder: str
    version: int


@dataclass(frozen=True, slots=True)
class State:
    """The state of a lake: all its ``tables`` are as of ``sequence`` (-1: no table was written yet).

    ``offsets`` are the first offsets of later records, by partition (topic/number). ``last`` maps the key of a table's
    messages to the sequence of its newest record with rows. ``topics`` are the topics' ids in Kafka, and ``choices``
    are the options on which values depend. ``behind`` are tables that the run refused: they are as of an earlier
    sequence.
    """

    sequence: int = -1
    transaction: str = ""
    offsets: Mapping[str, int] = field(default_factory=dict)
    last: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    history: History = NOTHING
    tables: tuple[Held, ...] = ()
    behind: tuple[Held, ...] = ()


class LakeFolder:
    """The folder of a lake, locked until it is closed. ``identity`` describes the lake's format and its stream."""

    def __init__(self, folder: Folder, identity: Mapping[str, str]) -> None:
        """Raises UserError if another process uses the folder, if the folder can't be used, or if it contains other
        files but no lake."""
        self.folder, self._identity = folder, identity
        self._known: str | None = None  # the newest state that this process read or wrote
        self._where = f"option --to {folder.address}"
        try:
            _require_lake(folder, self._where)
            folder.make("")
            folder.make(_OWN, private=True)
            self._lock = folder.lock(f"{_OWN}/{_LOCK}")
        except InUseError as told:
            hint = f"wait until it has ended; {told}".rstrip("; ")
            raise UserError(
                "another cdc-lake writes to this lake", code="CDC-LAKE-IN-USE", where=self._where, hint=hint
            ) from None
        except OSError as error:
            raise UserError(
                f"cannot use the folder: {error}", code="CDC-LAKE-FOLDER", where=self._where, hint="name another one"
            ) from None

    def close(self) -> None:
        """Releases the lock."""
        self._lock.close()

    def load(self) -> State:
        """The saved state. Raises UserError if the lake has another format, stream or version, or if the state is
        damaged."""
        file, identity = f"{_OWN}/{_STATE}", {**_UNSAID, **self._identity}
        text = self._known = self.folder.read(file)
        if text is None:
            self.save(State())
            return State()
        try:
            tree = json.loads(text)
            found, saved = tree.pop("format"), {**_UNSAID, **tree.pop("identity")}
            if found == _FORMAT and saved == identity:
                return _state(tree)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"cannot read the lake's state: {error!r}",
                code="CDC-LAKE-FORMAT",
                where=self.folder.at(file),
                hint=_ANOTHER,
            ) from None
        if found != _FORMAT:
            raise UserError(
                f"the lake is of format {found}, not {_FORMAT}",
                code="CDC-LAKE-FORMAT",
                where=self.folder.at(file),
                hint=_ANOTHER,
            )
        key = next(key for key, value in identity.items() if saved.get(key) != value)
        raise UserError(
            f"the lake was made with {key} {saved.get(key)!r}, now it is {identity[key]!r}",
            code="CDC-LAKE-OTHER-SETTINGS",
            where=self._where,
            hint=_ANOTHER,
        )

    def save(self, state: State) -> None:
        """Saves ``state`` for ``load``, and lists the tables for readers.

        Raises PromiseError if another process saved a state meanwhile, which is possible on file systems without a
        lock.
        """
        tree = {**asdict(state), "history": to_tree(state.history), "format": _FORMAT, "identity": self._identity}
        file, text = f"{_OWN}/{_STATE}", json.dumps(tree, ensure_ascii=False)
        if self.folder.read(file) != self._known:
            hint = "see that one process writes to it; remove the folder, to have the lake made again, or name another"
            raise PromiseError(
                "another process wrote to this lake meanwhile",
                code="CDC-LAKE-OVERWRITTEN",
                where=self._where,
                hint=hint,
            )
        self.folder.replace(file, text, private=True)
        self._known = text
        self.list_tables(state)

    def list_tables(self, state: State) -> None:
        """Writes the list of tables for readers; each table is listed with its version as of the common sequence."""
        in_version = self._identity["format"] == "parquet"  # the other formats' readers find versions by themselves
        tables = [
            {"database": held.name[0], "table": held.name[1], "folder": held.folder, "version": held.version}
            | ({"path": f"{held.folder}/{version_folder(held.version)}"} if in_version else {})
            for held in state.tables
        ]
        told = {**self._identity, "sequence": state.sequence, "transaction": state.transaction, "tables": tables}
        text = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        if self.folder.read(MANIFEST) != text:
            self.folder.replace(MANIFEST, text)

    def remove(self, held: Held, sequence: int) -> str | None:
        """Moves a table's folder to the folder of dropped tables, under a name with ``sequence``; returns the new path,
        or None if the table's folder does not exist."""
        if not self.folder.exists(held.folder):
            return None
        target = f"{DROPPED}/{held.folder}~{sequence}"  # exists already if a run was killed after the rename
        self.folder.move(held.folder, target)
        return self.folder.at(target)


_UNSAID = {"history": "no"}  # values for keys that the states of earlier versions of cdc do not contain
_ANOTHER = "name another folder, or remove this one to have the lake made again"


def _state(tree: dict[str, Any]) -> State:
    behind = _held(tree.get("behind", ()))  # states of earlier versions of cdc do not contain it
    return State(**{**tree, "history": from_tree(tree["history"]), "tables": _held(tree["tables"]), "behind": behind})


def _held(tables: Iterable[dict[str, Any]]) -> tuple[Held, ...]:
    return tuple(Held((each["name"][0], each["name"][1]), each["folder"], each["version"]) for each in tables)


def _require_lake(folder: Folder, where: str) -> None:
    """Raises UserError if the folder is neither empty nor a lake."""
    names = folder.names("")
    if not names or _OWN in names:
        return
    hint = "name an empty folder, or one that does not exist yet"
    raise UserError(
        f"the folder holds other files and no lake: {names[0]!r}", code="CDC-LAKE-FOLDER", where=where, hint=hint
    )
