"""Compares the output of SHOW CREATE TABLE of two servers, and writes the ALTER TABLE that makes one table like the
other. Pure.
"""

import re
from typing import NamedTuple

from cdc.model.folding import folded

__all__ = ["Difference", "differences", "with_folded_names"]

_NAME = r"`(?:[^`]|``)+`"
_COLUMN = re.compile(_NAME)
_KEY = re.compile(rf"(?:UNIQUE |FULLTEXT |SPATIAL )?KEY ({_NAME})")
_CONSTRAINT = re.compile(rf"CONSTRAINT ({_NAME})")
# In the line of a constraint: its own name, and the table to which a foreign key refers.
_CONSTRAINT_LINE = re.compile(r"^  CONSTRAINT .*$", re.MULTILINE)
_NAMES = re.compile(rf"(?<=CONSTRAINT ){_NAME}|(?<=REFERENCES ){_NAME}(?:\.{_NAME})?")
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_ENGINE = re.compile(r"ENGINE=\w+ ?")
# A follower has the leader's table in a tablespace of its own (cdc.consumer.source.follower_statements).
_TABLESPACE = re.compile(rf"/\*!\d+ TABLESPACE {_NAME} \*/ ?")
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'")
_OPTION = re.compile(r"(\w+)=")
# The values that reset an option which the leader's table does not have.
_DEFAULTS = {
    "COMMENT": "''", "COMPRESSION": "''", "KEY_BLOCK_SIZE": "0", "ROW_FORMAT": "DEFAULT",
    "STATS_AUTO_RECALC": "DEFAULT", "STATS_PERSISTENT": "DEFAULT", "STATS_SAMPLE_PAGES": "DEFAULT",
}  # fmt: skip
_PRIMARY, _OPTIONS = "PRIMARY KEY", "the table's options"
# SHOW CREATE TABLE contains the PARTITION BY clause in an executable comment.
_PARTITIONS = re.compile(r"/\*!\d+ (PARTITION BY .*)\*/", re.DOTALL)


class Difference(NamedTuple):
    """A difference, described in ``what``, and the part of an ALTER TABLE that removes it; this part is empty if no
    ALTER can.
    """

    what: str
    change: str


def differences(here: str, there: str, *, any_engine: bool = False) -> list[Difference]:
    """Returns how the table ``here`` differs from the table ``there``, which are the outputs of SHOW CREATE TABLE.

    The order of columns and keys, the next AUTO_INCREMENT number and the tablespace do not count as differences. With
    ``any_engine`` the engine does not count either.
    """
    ours, theirs = (_parts(text, any_engine=any_engine) for text in (here, there))
    found = [_difference(name, ours.get(name), theirs.get(name)) for name in ours | theirs]
    # A key or constraint is dropped before its columns, and added after them.
    return sorted((each for each in found if each is not None), key=lambda each: _rank(each.change))


def with_folded_names(text: str) -> str:
    """Returns the output of SHOW CREATE TABLE with the names in constraints in lower case, for a comparison with a
    server that stores names of tables in lower case.

    It shows those of referenced tables so, and makes names of constraints of its own (``pet_ibfk_1``) from the name of
    the table. The case of a constraint's name has no meaning.
    """
    return _CONSTRAINT_LINE.sub(lambda line: _NAMES.sub(lambda name: folded(name[0]), line[0]), text)


def _rank(change: str) -> int:
    if change.startswith(("DROP CONSTRAINT", "DROP PRIMARY", "DROP KEY")) and ", ADD" not in change:
        return 0
    return 1 if "COLUMN" in change.split("`")[0] else 2


def _parts(text: str, *, any_engine: bool) -> dict[str, str]:
    """Maps the names of columns, keys and constraints to their definitions, and _OPTIONS to the table's options."""
    head, _, rest = text.partition("(\n")
    body, end, options = rest.rpartition("\n)")
    if not (head and end):
        return {_OPTIONS: text}
    found = dict(_named(line) for line in body.split("\n"))
    options = _TABLESPACE.sub("", _COUNTER.sub("", options)).strip()
    return found | {_OPTIONS: _ENGINE.sub("", options) if any_engine else options}


def _named(line: str) -> tuple[str, str]:
    text = line.strip().removesuffix(",")
    if column := _COLUMN.match(text):
        return f"column {column[0]}", text
    if key := _KEY.match(text):
        return f"key {key[1]}", text
    if constraint := _CONSTRAINT.match(text):
        return f"constraint {constraint[1]}", text
    return (_PRIMARY if text.startswith(_PRIMARY) else text), text


def _difference(name: str, here: str | None, there: str | None) -> Difference | None:
    if here == there:
        return None
    kind, _, quoted = name.partition(" ")
    if name == _OPTIONS:
        return Difference(f"{name} are {here}, on the leader {there}", _changed_options(here or "", there or ""))
    if kind == "column":
        return _of_column(quoted, here, there)
    drop = "DROP PRIMARY KEY" if name == _PRIMARY else f"DROP {kind.upper()} {quoted}"
    steps = [*([drop] if here is not None else []), *([f"ADD {there}"] if there is not None else [])]
    return Difference(_told(name, here, there), ", ".join(steps))


def _changed_options(here: str, there: str) -> str:
    ours, theirs = ({*_OPTION.findall(_QUOTED.sub("''", text))} for text in (here, there))
    reset = [f"{option}={_DEFAULTS[option]}" for option in sorted(ours - theirs) if option in _DEFAULTS]
    if _PARTITIONS.search(here) and not _PARTITIONS.search(there):
        reset.append("REMOVE PARTITIONING")
    options = " ".join(_PARTITIONS.sub("", there).split())
    partitions = _PARTITIONS.search(there)
    return " ".join([options, *reset, *([" ".join(partitions[1].split())] if partitions else [])])


def _of_column(name: str, here: str | None, there: str | None) -> Difference:
    what = _told(f"column {name}", here and here.removeprefix(name), there and there.removeprefix(name))
    if there is None:
        return Difference(what, f"DROP COLUMN {name}")
    return Difference(what, f"{'ADD' if here is None else 'MODIFY'} COLUMN {there}")


def _told(name: str, here: str | None, there: str | None) -> str:
    if here is None:
        return f"{name} is missing"
    if there is None:
        return f"{name} is not on the leader"
    return f"{name} is {here.strip()}, on the leader {there.strip()}"
