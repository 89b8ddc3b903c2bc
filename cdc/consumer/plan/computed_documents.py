"""Compares JSON documents in generated columns with the leader's, once their rows are stored."""

from collections.abc import Iterator

from cdc.consumer.literals.before_images import compared
from cdc.consumer.literals.values import exact, is_document, matcher, table_name
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Step

__all__ = ["comparisons_of_documents"]


def comparisons_of_documents(step: Step) -> Iterator[Statement]:
    """Statements that find each row that the step has stored if its verified documents are the leader's: a comparison
    of many rows shows only whether any row differs. Raises ValueError for a value without a literal.
    """
    record, where = step.record, matcher(step.record, step.rounded)
    verified = compared(record, step.verified)
    for change in step.changes:
        image = change.row.after or []
        same = [exact(record.columns[index], image[index]) for index in verified if is_document(image[index])]
        if same:
            found = f"{where(image)} AND {' AND '.join(same)}"
            yield Statement(f"SELECT 1 FROM {table_name(record.uri)} WHERE {found} FOR UPDATE".encode(), 1, [change])
