"""Replaces the leader's database names in records by the follower's names (the profile's ``[renames]``).

In the text of a statement, only words that are certain to be names of databases are renamed. A name before a dot may be
a database, a table or an alias, and only the server knows which. It is certain to be a database if

- it comes before the first bracket or query of a statement on tables or indexes, where only objects are named;
- or if each occurrence of it in the statement has a dot after it and none before it: a table or an alias of that name
  would also occur alone, or after a dot.

Names without a database need no change, because the statement is executed with the renamed database as the default
database.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable, position_of
from cdc.consumer.literals.values import identifier
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.spellings import Spellings
from cdc.consumer.source.statement_check import charset_of, parsed, quoting, spliced
from cdc.errors import UserError
from cdc.model.client_text import stored_name
from cdc.model.record import SKIPPED, Record, Uri
from cdc.sql.tokens import Span, Token, excerpt, spans

__all__ = ["Renaming", "names_database", "rewritten"]

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
        """Yields the records of a stream, each renamed with ``of_stream``."""
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
        # would write the rows to the other database. They would also take the record's types for those of the other
        # database's columns, and its mark of a copy for that of the other table.
        return replace(record.emptied(), types=(), copying=False)

    def statement(self, record: Record) -> Record:
        """Returns a replicated Query record with the follower's names in its text and context; ``affects`` is
        unchanged.

        Raises Unapplicable if it is not certain which words of the statement are names of databases. On the follower,
        the new name of one database may be the name of another database. If the statement contains the name of that
        other database, raises Unapplicable; if the statement changes that other database, raises UserError.
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
