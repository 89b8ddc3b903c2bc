"""Searches the topics for the transaction that ``--until`` names by its GTID, before anything is applied."""

import logging

from cdc.consumer.range.until import Until
from cdc.consumer.source.reader import KafkaReader
from cdc.consumer.source.record_source import RecordSource
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.gtid import GtidSet
from cdc.service.logs import event
from cdc.service.retry import RetriedCalls

__all__ = ["search"]

_LOG = logging.getLogger("cdc.consumer")


def search(
    until: Until,
    checkpoint: Checkpoint,
    *,
    source: RecordSource,
    reader: KafkaReader,
    commits: str,
    calls: RetriedCalls,
) -> None:
    """Notes in ``until`` that the transaction is in the topics. A GTID that the producer has not reached is searched
    later, while the stream is read.

    ``commits`` is the topic of the commit log. The source must be started again afterwards. Raises UserError if the
    producer has passed the GTID and no record after the checkpoint has it; otherwise the errors of the source.
    """
    gtid = until.place.gtid
    if not gtid or calls.call(lambda: _comes_later(gtid, reader, commits)):
        return

    def start() -> None:
        # The topic is requested now, so that it reaches as far as the commit log.
        topic = source.topic()
        if topic is not None:
            source.start(topic, checkpoint.offsets, sequence=checkpoint.sequence + 1, until_current=True)

    event(_LOG, "searching the topic for the transaction", gtid=gtid)
    calls.call(start)
    for located in source.records(calls.stop):
        calls.keep_alive()
        if located is not None and located.record.transaction == gtid and located.record.sequence > checkpoint.sequence:
            until.found()
            return
    if not calls.stop.is_set():
        raise until.not_ahead(checkpoint.sequence)


def _comes_later(gtid: str, reader: KafkaReader, commits: str) -> bool:
    newest = reader.commits(commits) if reader.topic(commits) else None
    return newest is not None and gtid not in GtidSet.parse(newest.gtid_set)
