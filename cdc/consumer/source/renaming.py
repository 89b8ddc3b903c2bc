"""Replaces the leader's database names in records by the follower's names (the profile's ``[renames]``), and writes all
names in lower case if the follower has ``lower_case_table_names = 1``. Pure.

In the text of a statement, only words that are certain to be names of databases are renamed. A name before a dot may be
a database, a table or an alias, and only the server knows which. It is certain to be a database if

- it comes before the first bracket or query of a statement on tables or indexes, where only objects are named;
- or if each occurrence of it in the statement has a dot after it and none before it: a table or an alias of that name
  would also occur alone, or after a dot.

Names without a database need no change, because the statement is executed with the renamed database as the default
database.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cdc.config.renames import Renames
from cdc.config.table_globs import named
from cdc.consumer.errors import Unapplicable, position_of
from cdc.consumer.literals.values import identifier
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.statement_check import charset_of, parsed, quoting, spliced
from cdc.consumer.state import own_table
from cdc.consumer.state.own_table import Name
from cdc.errors import UserError
from cdc.model.client_text import stored_name
from cdc.model.names import folded
from cdc.model.record import SKIPPED, Record, Uri
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import Span, Token, excerpt, spans

__all__ = ["Renaming", "Spellings", "names_database", "rewritten"]

# Converts the leader's names to lower case for a follower with ``lower_case_table_names = 1``.
#
# On such a follower ``Pet`` and ``pet`` are the same table, but on a leader with the value 0 they are two tables. So
# the leader's spelling of each name is stored in the follower (module ``state.own_table``). While a name is in use,
# another spelling of it is refused. Such a spelling may occur in a statement that creates the second table, in a
# statement about a table that the leader does not have, or in rows of the second table.

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
    """Keeps the leader's spelling (in upper and lower case) of each name that a follower stores in lower case, as of
    the last record that was read from the stream.

    The spellings are stored in the database ``schema``. ``passes(uri)`` decides whether an object is replicated to this
    follower; ``uri`` contains folded names (in lower case).
    """

    def __init__(self, schema: str, resource: str, *, passes: Callable[[Uri], bool]) -> None:
        self._place = schema, resource
        self._passes = passes
        self._spelled: dict[Name, str] = {}
        self._settled: dict[Uri, Uri] = {}  # maps each table whose rows need no more checks to its folded name
        self._changes: deque[_Change] = deque()  # the changes that the follower has perhaps not committed yet
        # maps the sequence of a refused statement to a pair: the name in the statement, and the name that is in use
        self._refused: dict[int, tuple[Uri, Uri]] = {}

    @property
    def question(self) -> str:
        """The query for the spellings at the follower's checkpoint."""
        return own_table.known_names(*self._place)

    def begin(self, found: Iterable[Sequence[Any]]) -> None:
        """Continues from the follower's checkpoint; ``found`` is the result of the query ``question``."""
        self._spelled = {(str(database), str(table)): str(spelled) for database, table, spelled in found}
        self._settled.clear()
        self._changes.clear()
        self._refused.clear()

    def folded(self, record: Record) -> Record:
        """Returns the record with its names in lower case (folded). Must be called for each record, in order.

        Raises PromiseError for rows of a table if another table of the leader has the folded name on the follower."""
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
        made = [
            own_table.remember_name(*self._place, name, spelled)
            for name, spelled in last.items()
            if spelled is not None
        ]
        gone = [name for name, spelled in last.items() if spelled is None]
        made += [own_table.forget_names(*self._place, gone)] if gone else []
        return [Statement(text.encode()) for text in made]

    def committed(self, sequence: int) -> None:
        """Forgets the changes up to ``sequence``, which the follower has committed."""
        while self._changes and self._changes[0].sequence <= sequence:
            self._changes.popleft()

    def _see_rows(self, record: Record) -> None:
        found: dict[Name, str | None] = {}
        if (other := self._take(found, record.uri, whole=True)) is not None:
            # Rows are refused here, before --skip is considered, so the hint must not offer it.
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
        hint=f"rename one of them on the leader, leave both out with the consumer's [filters] until it has passed this "
        "record, and have them copied when the filters include them again (cdc-producer PROFILE --copy); or use a "
        f"follower that was initialised with 0. If the leader has no {names_[1]}, nothing needs to be done",
    )


_DOT, _BRACKET, _NOTHING = Token("mark", "."), Token("mark", "("), Token("mark", "")
# Names of columns may follow these words: the words of a query, and ORDER BY of ALTER TABLE.
_COLUMNS = {"SELECT", "WITH", "AS", "ORDER"}
_BODIES = ("View", "Procedure", "Function", "Library")


def rewritten(record: Record, renames: Renames) -> Record:
    """Returns the record with the follower's names of databases in its statement.

    Raises Unapplicable if it is not certain which names are databases, or if the statement's character set can't encode
    a new name.
    """
    found = _spans(record)
    occurrences = [span for name in renames.databases for span in _occurrences(record, found, name, renames)]
    charset = charset_of(record)
    for span in sorted(occurrences, key=lambda each: each.start, reverse=True):
        record = _replaced(record, span, identifier(renames.new(renames.stored(stored_name(span.token.text, charset)))))
    return record


def _replaced(record: Record, span: Span, new: str) -> Record:
    try:
        # New names are ASCII (cdc.config.renames), and ASCII characters have the same bytes in each character set
        # except swe7.
        return spliced(record, span.start, span.end, new)
    except ValueError:
        raise Unapplicable(
            f"a statement's character set, {charset_of(record)}, does not have the new name {new}: "
            f"{excerpt(record.query)}",
            code="CDC-RENAMES-CHARSET",
            record=record,
            hint="run the statement on the follower by hand, with the new name",
        ) from None


def names_database(record: Record, name: str, renames: Renames) -> bool:
    """Whether the statement contains the name of the database ``name``. Raises Unapplicable if that is not certain."""
    return bool(_occurrences(record, _spans(record), name, renames))


def _spans(record: Record) -> list[Span]:
    return list(spans(parsed(record), **quoting(record)))


def _occurrences(record: Record, found: list[Span], name: str, renames: Renames) -> list[Span]:
    """Returns the places at which the statement contains the name of the database ``name``. Raises Unapplicable if the
    places are not certain.
    """
    charset = charset_of(record)
    qualifiers: list[int] = []
    others: list[int] = []
    for at, (before, token, after) in enumerate(_neighbours(found)):
        if token.kind not in ("word", "quoted") or after.kind == "host":
            continue
        if renames.stored(stored_name(token.text, charset)) == name:
            (qualifiers if after == _DOT and before != _DOT else others).append(at)
    actions = [affect["action"] for affect in record.affects]
    if actions and all(action.endswith("Database") for action in actions):
        # A statement about a database contains no other name of a database. ALTER DATABASE may omit the name.
        if qualifiers or len(others) > 1:
            raise _ambiguous(record, name)
        return [found[at] for at in others]
    has_body = any(action.endswith(_BODIES) and not action.startswith("Drop") for action in actions)
    head = 0 if has_body else _head(found)
    if (others and any(at >= head for at in qualifiers)) or (has_body and _may_be_in_string(found, name, renames)):
        raise _ambiguous(record, name)
    return [found[at] for at in qualifiers]


def _neighbours(found: list[Span]) -> Iterator[tuple[Token, Token, Token]]:
    items = [_NOTHING, *[span.token for span in found], _NOTHING]
    return zip(items, items[1:], items[2:], strict=False)


def _head(found: list[Span]) -> int:
    """Counts the tokens before the first bracket, or before the first word that may be followed by names of columns."""
    for at, span in enumerate(found):
        if span.token == _BRACKET or span.token.word() in _COLUMNS:
            return at
    return len(found)


def _may_be_in_string(found: list[Span], name: str, renames: Renames) -> bool:
    """Whether the body of a view or routine may use the name in a string, or in a statement that the body prepares."""
    return any(
        (span.token.kind == "string" and name in renames.stored(span.token.text)) or span.token.word() == "PREPARE"
        for span in found
    )


def _ambiguous(record: Record, name: str) -> Unapplicable:
    return Unapplicable(
        f"it is ambiguous where a statement names the database {name}, which is renamed: {excerpt(record.query)}",
        code="CDC-RENAMES-AMBIGUOUS",
        record=record,
        hint="run the statement on the follower by hand, with the new name",
    )


class Renaming:
    """Renames databases in records. ``replicated(uri)`` decides whether an object is replicated; ``uri`` is its name on
    the leader.

    ``spellings`` is set if the follower stores names in lower case; the leader's names are then folded first.
    """

    def __init__(
        self, renames: Renames, *, replicated: Callable[[Uri], bool], spellings: Spellings | None = None
    ) -> None:
        self._renames = renames
        self._replicated = replicated
        self.spellings = spellings

    def __bool__(self) -> bool:
        return bool(self._renames or self.spellings is not None)

    def passes(self, uri: Uri) -> bool:
        """Whether an object is replicated; ``uri`` is the object's name on the follower."""
        return self._replicated(Uri(uri.resource, self._renames.former(uri.database), uri.table))

    def on_follower(self, uri: Uri) -> Uri | None:
        """Returns the name of an object on the follower; ``uri`` is its name on the leader. Returns None if another
        database has that name on the follower, so that the object can't exist there.
        """
        if uri.database in self._renames.taken:
            return None
        return Uri(uri.resource, self._renames.new(uri.database), uri.table)

    def located(self, records: Iterable[Located | None]) -> Iterator[Located | None]:
        """Yields the records of a stream; records with rows get the follower's name of their table (``of_stream``)."""
        for item in records:
            yield item if item is None else item._replace(record=self.of_stream(item.record))

    def of_stream(self, record: Record) -> Record:
        """Renames the table of a record with rows to its name on the follower.

        The text of a statement is unchanged here, because a statement that can't be renamed may be skipped. Must be
        called in the order of the stream.
        """
        if self.spellings is not None:
            record = self.spellings.folded(record)
        return record if record.operation in ("Query", SKIPPED) else self.rows(record)

    def committed(self, sequence: int) -> None:
        """Notes that the follower has committed the records up to ``sequence``."""
        if self.spellings is not None:
            self.spellings.committed(sequence)

    def rows(self, record: Record) -> Record:
        """Returns a record with rows; the name of its table is replaced by the follower's name.

        Raises UserError if another database has that name on the follower.
        """
        uri = record.uri
        new = self._renames.new(uri.database)
        if new != uri.database:
            return replace(record, uri=Uri(uri.resource, new, uri.table))
        if uri.database not in self._renames.taken:
            return record
        if self._replicated(uri):
            raise self._taken(record, uri.database)
        # The rows are not replicated. They are removed here, because later stages know only the follower's names, and
        # would write the rows to the other database. They would also use the record's types, and its mark of a copy,
        # for the table of the other database.
        return replace(record.emptied(), types=(), copying=False)

    def statement(self, record: Record) -> Record:
        """Returns a replicated Query record with the follower's names in its text and context; ``affects`` is
        unchanged.

        Raises Unapplicable if it is not certain which words of the statement are names of databases. The new name of a
        renamed database may also be the name of another database of the leader, which then can't exist on the follower.
        Raises Unapplicable if the statement mentions that other database, and UserError if it changes an object in it.
        """
        if self.spellings is not None:
            self.spellings.check(record)
        for name in self._renames.taken:
            if _affects(record, name):
                raise self._taken(record, name)
            if names_database(record, name, self._renames):
                raise Unapplicable(
                    f"a statement names the leader's {name}, but on the follower another database has that name: "
                    f"{excerpt(record.query)}",
                    code="CDC-RENAMES-AMBIGUOUS",
                    record=record,
                    hint="rename that database too",
                )
        context = dict(record.context or {})
        database = context.get("database", "")
        # It is safer to have no default database than a wrong default database: without one, the server refuses names
        # that are not qualified.
        context["database"] = "" if database in self._renames.taken else self._renames.new(database)
        return replace(rewritten(record, self._renames), context=context)

    def _taken(self, record: Record, database: str) -> UserError:
        return UserError(
            f"two of the leader's databases would have the name {database} on the follower: "
            f"{database} itself and {self._renames.former(database)}",
            code="CDC-RENAMES-COLLIDE",
            where=position_of(record),
            hint="exclude one of them in the consumer's [filters], or rename it too",
        )


def _affects(record: Record, database: str) -> bool:
    ends = [affect[end] for affect in record.affects for end in ("uri", "to") if end in affect]
    return any(Uri.parse(uri).database == database for uri in ends)
