"""Counts how often the follower has each row of a table without a key, before the DELETE statements for such rows are
planned.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cdc.consumer.errors import Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.before_images import INCOMPARABLE
from cdc.consumer.literals.image_keys import document_literals, document_text
from cdc.consumer.plan.planner import Step
from cdc.consumer.plan.removals import Removal, removals
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Uri
from cdc.service.logs import event

__all__ = ["RowCounts"]

_LOG = logging.getLogger("cdc.consumer")
_DOCUMENTS = 500  # the maximum number of documents in one query, since the server limits the number of subqueries


class RowCounts:
    """Replaces the ``Remove`` steps of a plan by steps with counted rows. Nothing else may change the tables until
    these steps are executed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def prepared(self, steps: Sequence[Step], *, schema: Callable[[Uri], TableSchema], size: int) -> list[Step]:
        """Returns the plan with each ``Remove`` step replaced by steps whose statements have about ``size`` bytes.
        Raises Interrupted.

        If the rows of a step can't be counted on the follower, the step stays as it is, and its rows are deleted one by
        one.
        """
        found: list[Step] = []
        for step in steps:
            if step.operation != "Remove":
                found.append(step)
                continue
            try:
                found += list(self._prepared(step, schema(step.record.uri), size))
            except (*INCOMPARABLE, Refused) as error:
                _one_by_one(step, reason=error)
                found.append(step)
        return found

    def _prepared(self, step: Step, schema: TableSchema, size: int) -> Iterator[Step]:
        documents = self.texts([change.row.before or [] for change in step.changes], size=size)
        for removal in removals(step, schema, documents, size=size):
            # Normally the leader and the follower store the rows in the same order, so that the rows to delete are the
            # first rows.
            if removal.ordered and removal.is_all(self._keys(removal)):
                yield from removal.of_first()
                continue
            counted = self._rows(removal.count())
            for made in removal.of_counted({key.hex(): int(count) for key, count in counted}):
                if made.operation == "Delete":
                    _one_by_one(made, reason="they are not there as often as they go, or in columns of other types")
                yield made

    def _keys(self, removal: Removal) -> list[str]:
        return [key.hex() for (key,) in self._rows(removal.first())]

    def texts(self, images: Sequence[Sequence[object]], *, size: int) -> dict[str, str]:
        """Maps the literal of each JSON document in the images to the text that the server returns for the document."""
        texts: dict[str, str] = {}
        literals = document_literals(images)
        while literals:
            part: list[str] = []
            total = 0
            while literals and len(part) < _DOCUMENTS and (not part or total + len(literals[-1].encode()) < size):
                part.append(literals.pop())
                total += len(part[-1].encode()) + 30
            union = " UNION ALL ".join(f"SELECT {number} AS n,{text} AS d" for number, text in enumerate(part))
            for number, text in self._rows(f"SELECT n,{document_text('d')} FROM ({union}) x"):
                if text is not None:
                    texts[part[number]] = text
        return texts

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        if len(sql.encode()) >= self._session.max_packet:
            # The server would close the connection after a longer query.
            raise ValueError("an image is too large for a query")
        return self._session.rows(sql)


def _one_by_one(step: Step, *, reason: object) -> None:
    event(
        _LOG, "rows without a key are searched one by one",
        uri=step.record.uri, sequence=step.record.sequence, rows=len(step.changes), reason=reason,
    )  # fmt: skip
