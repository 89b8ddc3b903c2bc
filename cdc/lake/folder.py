"""Manages the folder of a lake: its lock, its state, the list of its tables for readers, and the names of its folders.

The state contains the sequence that all tables have reached, and the offsets in the topics from which the next run
reads. The state is replaced as a whole, after all tables were written. If a run is killed before that, the next run
begins where the killed run began, and the note of each table shows which records the table already contains.

Names of databases and tables are encoded as names of folders that every system and every reader accepts. ASCII letters,
digits, ``_`` and ``-`` are kept; any other character is replaced by ``~``, its code in hexadecimal digits, and another
``~``. The name of a folder never begins with ``_`` or ``.``, since readers of Parquet ignore such folders, and never
contains ``.``, ``=`` or ``%``, which have a meaning in paths. The names of the lake's own files begin with or contain
such a character, so they never clash with the folder of a table.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

from cdc.errors import PromiseError, UserError
from cdc.model.read_record import ReadRecord
from cdc.spark.ddl.lineage import Name
from cdc.spark.folders import Folder, InUseError
from cdc.spark.frames.schema_history import NOTHING, History, from_tree, to_tree

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
_LONGEST = 120  # the most characters of an encoded name; a longer name is cut and ends with a hash


def folder(database: str, table: str) -> str:
    """Returns the folder of a table, relative to the folder of the lake."""
    return f"{encoded(database)}/{encoded(table)}"


def encoded(name: str) -> str:
    """Encodes the ``name`` of a database or table as the name of a folder."""
    text = _OTHER.sub(lambda match: f"~{ord(match[0]):x}~", name)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}~~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def version_folder(version: int) -> str:
    """Returns the folder with the rows of a version in plain Parquet, relative to the folder of the table."""
    return f"_v{version}"


def quoted(name: str) -> str:
    """Quotes a column's name for Spark SQL."""
    return f"`{name.replace('`', '``')}`"


def unfit(columns: Sequence[str], reserved: Collection[str], in_files: Callable[[str], str] = str) -> str:
    """Returns the reason why a format does not support these ``columns``; empty if it supports them.

    A format does not support columns with ``reserved`` names, or with two names that become equal in Spark or in the
    files of the format (``in_files``).
    """
    if taken := [name for name in columns if name.lower() in reserved]:
        return f"the format has columns of its own with these names: {', '.join(taken)}"
    for written in (str.lower, _ignoring_case, in_files):
        first: dict[str, str] = {}
        for name in columns:
            if (other := first.setdefault(written(name), name)) != name:
                return f"the names of two columns become one: {other}, {name}"
    return ""


def _ignoring_case(name: str) -> str:
    """Folds the case of ``name`` as Java's ``equalsIgnoreCase`` does. Spark takes two names for the same if this
    function returns the same text for both, for instance for ``ı`` and ``i``.
    """
    upper = (each.upper() if len(each.upper()) == 1 else each for each in name)
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in upper)


MANIFEST, DROPPED, CHANGES = "lake.json", "_dropped", "_history"
_OWN, _STATE, _LOCK, _OWNER = "_cdc", "state.json", "lock", "owner"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Held:
    """A table of the lake: its ``name``, its ``folder`` relative to the lake's folder, and its newest ``version``."""

    name: Name
    folder: str
    version: int


@dataclass(frozen=True, slots=True)
class State:
    """The state of a lake. All ``tables`` in it equal the leader's tables after ``sequence``; ``sequence`` is -1 if no
    table was written yet.

    ``offsets`` maps each partition (topic/number) to the first offset of records after ``sequence``. ``last`` maps the
    message key of each table to the sequence of the table's newest record with rows. ``topics`` are the ids of the
    topics in Kafka, and ``choices`` are the options that determine values. ``behind`` are tables that the last run
    refused; they equal the leader's tables after an earlier sequence. ``gap`` is the newest sequence that was missing
    in the topics at the first run, -1 if none was. ``read`` maps each partition to the last record up to ``sequence``
    and, if a copy wrote some there, the last one of those (``model.read_record``).
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
    gap: int = -1
    read: Mapping[str, Sequence[ReadRecord]] = field(default_factory=dict)


class LakeFolder:
    """The folder of a lake, which is locked until ``close`` is called. ``identity`` describes the lake's format and its
    stream.
    """

    def __init__(self, folder: Folder, identity: Mapping[str, str]) -> None:
        """Locks the folder. Raises UserError if another process uses it, if it can't be used, or if it contains files
        but no lake."""
        self.folder, self._identity = folder, identity
        self.identifier: Callable[[str], str] | None = None  # the name of a table in the lake's catalog, if it has one
        self._known: str | None = None  # the text of the newest state that this process read or wrote
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

    def owner(self) -> str:
        """Returns the random id of the lake, which is made at the first call. A copy of the stream into another folder
        is another lake.
        """
        file = f"{_OWN}/{_OWNER}"
        text = self.folder.read(file)
        if not text:
            text = uuid4().hex
            self.folder.replace(file, text, private=True)
        return text

    def close(self) -> None:
        """Releases the lock on the folder."""
        self._lock.close()

    def load(self) -> State:
        """Loads the saved state. Raises UserError if the lake has another format, stream or version, or if the state is
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

        Raises PromiseError if another process has saved a state in the meantime; this is possible on file systems
        without locks.
        """
        tree = {**asdict(state), "history": to_tree(state.history), "format": _FORMAT, "identity": self._identity}
        if state.gap < 0:
            del tree["gap"]  # earlier versions of cdc do not know the key
        # Earlier versions refuse a key that they do not know, and ignore an offset of no partition.
        tree["offsets"] = {**tree["offsets"], **{_READ + name: records for name, records in tree.pop("read").items()}}
        file, text = f"{_OWN}/{_STATE}", json.dumps(tree, ensure_ascii=False)
        if self.folder.read(file) != self._known:
            hint = "let only one process write to the lake; remove the folder to have it made again, or name another"
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
        """Writes the file that lists the tables for readers. The file contains the version of each table after the
        sequence that all tables have reached.
        """
        in_version = self._identity["format"] == "parquet"  # readers of other formats find the version themselves
        tables = [
            {"database": held.name[0], "table": held.name[1], "folder": held.folder, "version": held.version}
            | ({"identifier": self.identifier(held.folder)} if self.identifier else {})
            | ({"path": f"{held.folder}/{version_folder(held.version)}"} if in_version else {})
            for held in state.tables
        ]
        told = {**self._identity, "sequence": state.sequence, "transaction": state.transaction, "tables": tables}
        text = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        if self.folder.read(MANIFEST) != text:
            self.folder.replace(MANIFEST, text)

    def remove(self, held: Held, sequence: int) -> str | None:
        """Moves the folder of a table to the folder of dropped tables, under a name that contains ``sequence``. Returns
        the new path, or None if the folder of the table does not exist."""
        if not self.folder.exists(held.folder):
            return None
        target = f"{DROPPED}/{held.folder}~{sequence}"  # if a run was killed after the rename, this path already exists
        self.folder.move(held.folder, target)
        return self.folder.at(target)


_READ = "read "  # begins the key of a partition's last records; no topic's name contains a blank
_UNSAID = {"history": "no", "catalog": "none"}  # values of keys that are missing in states of earlier versions of cdc
_ANOTHER = "name another folder, or remove this one to have the lake made again"


def _state(tree: dict[str, Any]) -> State:
    behind = _held(tree.get("behind", ()))  # the key is missing in states of earlier versions of cdc
    offsets = {name: at for name, at in tree["offsets"].items() if not name.startswith(_READ)}
    read = {
        name.removeprefix(_READ): tuple(ReadRecord(*each) for each in records)
        for name, records in tree["offsets"].items()
        if name.startswith(_READ)
    }
    parsed = {"history": from_tree(tree["history"]), "tables": _held(tree["tables"]), "behind": behind}
    return State(**{**tree, **parsed, "offsets": offsets, "read": read})


def _held(tables: Iterable[dict[str, Any]]) -> tuple[Held, ...]:
    return tuple(Held((each["name"][0], each["name"][1]), each["folder"], each["version"]) for each in tables)


def _require_lake(folder: Folder, where: str) -> None:
    """Raises UserError if the folder contains files but no lake."""
    names = folder.names("")
    if not names or _OWN in names:
        return
    hint = "name an empty folder, or one that does not exist yet"
    raise UserError(
        f"the folder holds other files and no lake: {names[0]!r}", code="CDC-LAKE-FOLDER", where=where, hint=hint
    )
