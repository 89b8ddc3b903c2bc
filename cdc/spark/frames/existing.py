"""Which tables there are after a sequence of the stream. Pure."""

from cdc.model.uri import Uri
from cdc.spark.ddl.lineage import Act, Name, table_name
from cdc.spark.frames.told import History, Told

__all__ = ["existing"]


def existing(history: History, sequence: int) -> dict[Name, int]:
    """The tables that there are after ``sequence``, and the first sequence that tells of each since it is there."""
    found: dict[Name, int] = {}
    events: list[tuple[int, int, Act | Told]] = [(act.sequence, act.place, act) for act in history.upto(sequence)]
    events += [(told.sequence, 0, told) for told in history.told if told.sequence <= sequence]
    for number, _, event in sorted(events, key=lambda each: each[:2]):
        if isinstance(event, Told):
            found.setdefault(event.name, number)
            continue
        name = table_name(event.uri)
        if event.action == "DropDatabase":
            database = Uri.parse(event.uri).database
            found = {each: first for each, first in found.items() if each[0] != database}
        elif event.action in ("DropTable", "DropView") and name:
            found.pop(name, None)
        elif event.action == "RenameTable" and name and event.to and (new := table_name(event.to)):
            found[new] = found.pop(name, number)
        elif event.action in ("CreateTable", "AlterTable", "TruncateTable") and name:
            found.setdefault(name, number)
    return found
