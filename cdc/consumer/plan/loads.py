"""Adds many rows by LOAD DATA LOCAL, which costs the server about half of what an INSERT of the same rows costs it.

The data are the text of an INSERT's rows: its literals can be told to LOAD DATA as fields in quotes, with backslash
escapes, and NULL; what is between two rows ends a line. So only values may be loaded whose literals are numbers or
quoted text, and only into columns that store such a text as they store the literal: ``TAGS``.

LOCAL makes LOAD DATA store what it can and only warn of the rest, as IGNORE does. So the session counts as loaded only
the rows of a statement that has warned of nothing (``follower.local_data``), and anything else fails the batch.
"""

from collections.abc import Iterator, Mapping, Sequence

from cdc.consumer.literals.row_text import Tags
from cdc.consumer.literals.values import identifier, table_name
from cdc.consumer.plan.inserts import insert_head, runs, written_indexes
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Step
from cdc.model.record import Record
from cdc.model.values import NULL

__all__ = ["additions", "loadable_tags"]

# Fewer rows save the server less than the time in which it asks for the data.
_FEWEST = 500
_INTEGER = frozenset({"SignedInteger", "UnsignedInteger"})
_STRING = frozenset({"String"})
# The values that each type stores alike from a literal and from the literal's text (DATA_TYPE in the information
# schema). YEAR does not: 0 is the year 0, '0' is 2000. Other types have literals that are no plain text.
TAGS: Mapping[str, Tags] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _INTEGER),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _STRING),
    "decimal": frozenset({"Decimal"}),
    "enum": frozenset({"Enum"}),
    "date": frozenset({"Date"}),
    "datetime": frozenset({"DateTime"}),
    "timestamp": frozenset({"Timestamp"}),
}
_FORMAT = (
    r"CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\'' ESCAPED BY '\\' "
    "LINES TERMINATED BY '),('"
)


def loadable_tags(data_type: str, *, nullable: bool) -> Tags:
    """The tags of the values that may be loaded into a column; none for a column that can't be loaded.

    NULL only where the column takes it: in a TIMESTAMP that does not LOAD DATA stores the time, and warns of nothing.
    """
    tags = TAGS.get(data_type.lower(), frozenset())
    return tags | {NULL} if tags and nullable else tags


def additions(step: Step, generated: frozenset[str], size: int, loadable: Mapping[str, Tags]) -> Iterator[Statement]:
    """The statements that add the rows of a step, each of at most ``size`` bytes, data included, or of a single row.

    ``loadable`` are the columns into which values of these tags may be loaded. Raises as ``inserts``.
    """
    record = step.record
    written = written_indexes(record, generated)
    head = insert_head(record, written)
    load = _load(record, written) if loadable and written and step.modes is None and not step.flags else b""
    allowed = [loadable.get(record.columns[index], frozenset()) for index in written]
    for changes, texts, tags in runs(step, written, size - max(len(head), len(load))):
        if load and len(changes) >= _FEWEST and _all_within(tags, allowed):
            # Without the first row's parenthesis and the last one's: what is between two rows is their end.
            yield Statement(load, len(changes), changes, data=texts[1:-1])
        else:
            yield Statement(head + texts, len(changes), changes)


def _load(record: Record, written: Sequence[int]) -> bytes:
    """The name of the file means nothing: no file is read."""
    names = ",".join(identifier(record.columns[index]) for index in written)
    return f"LOAD DATA LOCAL INFILE 'cdc' INTO TABLE {table_name(record.uri)} {_FORMAT} ({names})".encode()


def _all_within(tags: Sequence[Tags], allowed: Sequence[Tags]) -> bool:
    return all(found <= permitted for found, permitted in zip(tags, allowed, strict=True))
