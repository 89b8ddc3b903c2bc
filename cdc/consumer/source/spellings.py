"""Converts the leader's names to lower case for a follower with ``lower_case_table_names = 1``. Pure.

On such a follower ``Pet`` and ``pet`` are the same table, but on a leader with the value 0 they are two tables. So the
leader's spelling of each name is stored in the follower (module ``names``). While a name is in use, another spelling of
it is refused. Such a spelling may occur in a statement that creates the second table, in a statement about a table that
the leader does not have, or in rows of the second table.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cdc.config.table_globs import named
from cdc.consumer.errors import Unapplicable
from cdc.consumer.plan.packets import Statement
from cdc.consumer.state import names
from cdc.consumer.state.names import Name
from cdc.model.names import folded
from cdc.model.record import SKIPPED, Record, Uri
from cdc.sql.effects import LEADER_ONLY

__all__ = ["Spellings"]

_ENDS = ("uri", "to", "like")
_TABLES = ("Table", "View", "Index")


class _Change(NamedTuple):
    """A change of a name: from ``sequence`` on, the leader uses ``name`` in the spelling ``spelled``. If ``spelled`` is
    None, the leader has removed the name.
    """

    sequence: int
    name: Name
    spelled: str | None


class Spellings:
    """The leader's spelling of each name on the follower, after the last record that was read from the stream.

    The spellings are stored in the database ``schema``. ``passes(uri)`` decides whether an object is replicated to this
    follower; ``uri`` contains folded names.
    """

    def __init__(self, schema: str, resource: str, *, passes: Callable[[Uri], bool]) -> None:
        self._place = schema, resource
        self._passes = passes
        self._spelled: dict[Name, str] = {}
        self._settled: dict[Uri, Uri] = {}  # maps tables whose rows need no more checks to their folded names
        self._changes: deque[_Change] = deque()  # the changes that the follower may not have committed yet
        # maps the sequence of a refused statement to a pair: the name in the statement, and the name that is in use
        self._refused: dict[int, tuple[Uri, Uri]] = {}

    @property
    def question(self) -> str:
        """The query for the spellings at the follower's checkpoint."""
        return names.known(*self._place)

    def begin(self, found: Iterable[Sequence[Any]]) -> None:
        """Continues from the follower's checkpoint; ``found`` is the result of the query ``question``."""
        self._spelled = {(str(database), str(table)): str(spelled) for database, table, spelled in found}
        self._settled.clear()
        self._changes.clear()
        self._refused.clear()

    def folded(self, record: Record) -> Record:
        """Returns the record with folded names. Must be called for each record, in the order of the stream.

        Raises PromiseError for rows of a table if the name of another table on the follower has the same folded form.
        """
        if record.operation in ("Query", SKIPPED):
            if record.operation == "Query":
                self._see(record)
            return _folded_statement(record)
        uri = self._settled.get(record.uri)
        if uri is None:
            uri = record.uri.folded()
            if self._passes(uri):
                self._see_rows(record)
            self._settled[record.uri] = uri
        return record if uri == record.uri else replace(record, uri=uri)

    def check(self, record: Record) -> None:
        """Raises Unapplicable for a statement with a name that is in use in a different spelling."""
        if (found := self._refused.get(record.sequence)) is not None:
            raise _two(record, *found)

    def notes(self, *, after: int, through: int) -> list[Statement]:
        """Returns the statements that store the changes of spellings in the records after sequence ``after`` through
        ``through``."""
        last = {each.name: each.spelled for each in self._changes if after < each.sequence <= through}
        made = [names.remember(*self._place, name, spelled) for name, spelled in last.items() if spelled is not None]
        gone = [name for name, spelled in last.items() if spelled is None]
        made += [names.forget(*self._place, gone)] if gone else []
        return [Statement(text.encode()) for text in made]

    def committed(self, sequence: int) -> None:
        """Forgets the changes up to ``sequence``, which the follower has committed."""
        while self._changes and self._changes[0].sequence <= sequence:
            self._changes.popleft()

    def _see_rows(self, record: Record) -> None:
        found: dict[Name, str | None] = {}
        if (other := self._take(found, record.uri, whole=True)) is not None:
            # Rows are refused here before they could be skipped.
            raise _two(record, record.uri, other).without_skip()
        self._change(record.sequence, found)

    def _see(self, record: Record) -> None:
        """Updates the spellings according to the effects of a statement. A statement that is refused changes no
        spelling."""
        found: dict[Name, str | None] = {}
        for action, *ends in self._effects(record):
            whole = action.endswith(_TABLES)
            for uri in ends:
                if (other := self._take(found, uri, whole=whole)) is not None:
                    self._refused[record.sequence] = uri, other
                    return
                if uri is ends[0] and action in ("DropTable", "DropView", "RenameTable"):
                    found[_name(uri)] = None
            if action == "DropDatabase":
                database = folded(ends[0].database)
                found.update(dict.fromkeys(name for name in self._spelled if name[0] == database))
                found[database, ""] = None
        self._change(record.sequence, found)

    def _effects(self, record: Record) -> Iterator[tuple[Any, ...]]:
        """Yields each action of a statement on a replicated object, with the URI of the object and, for a RENAME, also
        the new URI."""
        for affect in record.affects:
            ends = [Uri.parse(affect[end]) for end in ("uri", "to") if end in affect]
            if affect["action"].endswith(LEADER_ONLY) or not all(self._passes(uri.folded()) for uri in ends):
                continue
            yield affect["action"], *ends

    def _take(self, found: dict[Name, str | None], uri: Uri, *, whole: bool) -> Uri | None:
        """Adds the name of the database in ``uri`` to ``found``, and with ``whole`` also the name of the table.

        If an object uses one of these names in another spelling, returns that object; otherwise returns None.
        """
        database = (folded(uri.database), ""), uri.database
        table = [(_name(uri), uri.table)] if whole and uri.table is not None else []
        for name, spelled in (database, *table):
            former = found[name] if name in found else self._spelled.get(name)
            if former is not None and former != spelled:
                return Uri(uri.resource, uri.database, former) if name[1] else Uri(uri.resource, former)
            found[name] = spelled
        return None

    def _change(self, sequence: int, found: dict[Name, str | None]) -> None:
        for name, spelled in found.items():
            if self._spelled.get(name) == spelled:
                continue
            self._changes.append(_Change(sequence, name, spelled))
            if spelled is None:
                del self._spelled[name]
                self._settled.clear()
            else:
                self._spelled[name] = spelled


def _name(uri: Uri) -> Name:
    return folded(uri.database), folded(uri.table or "")


def _folded_statement(record: Record) -> Record:
    affects = tuple(map(_folded_affect, record.affects))
    context = record.context
    if context and "database" in context:
        context = context | {"database": folded(context["database"])}
    return replace(record, uri=record.uri.folded(), affects=affects, context=context)


def _folded_affect(affect: dict[str, Any]) -> dict[str, Any]:
    whole = affect["action"].endswith(_TABLES)

    def new(text: str) -> str:
        uri = Uri.parse(text)
        return str(uri.folded() if whole else uri._replace(database=folded(uri.database)))

    return affect | {end: new(affect[end]) for end in _ENDS if affect.get(end)}


def _two(record: Record, uri: Uri, other: Uri) -> Unapplicable:
    """Returns the error for ``record``. The record contains ``uri``, but the follower's object with this name is the
    leader's object ``other``.
    """
    kind = "database" if other.table is None else "table"
    names_ = [each.database if other.table is None else named(each.database, each.table or "") for each in (other, uri)]
    return Unapplicable(
        f"the follower has lower_case_table_names = 1, so the leader's {names_[0]} and {names_[1]} would be one {kind}",
        code="CDC-FOLLOWER-NAMES-MEET",
        record=record,
        hint=f"rename one of them on the leader, leave both out with the consumer's [filters] until it is past that, "
        "and have them copied when they are let in again (cdc-producer PROFILE --copy); or use a follower that was "
        f"initialised with 0. Where the leader has no {names_[1]}, there is nothing to do here",
    )
