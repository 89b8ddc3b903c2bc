"""Connects the stages that apply batches to a follower: from its checkpoint on, whatever the records come from."""

from collections.abc import Callable

from cdc.consumer.apply.applier import Applier
from cdc.consumer.apply.chunks import Chunks
from cdc.consumer.apply.committed import Committed
from cdc.consumer.apply.ddl_ledger import DdlLedger
from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.preparation import Preparation
from cdc.consumer.apply.row_by_row import RowByRow
from cdc.consumer.apply.row_differences import RowDifferences
from cdc.consumer.apply.serial import SerialExecutor
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.startup import Startup
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.copied import Copied
from cdc.model.uri import Uri

__all__ = ["applier_of", "schema_cache"]


def schema_cache(startup: Startup, passes: Callable[[Uri], bool]) -> SchemaCache:
    """What is known of the follower's tables; ``passes(uri)`` says which are replicated, by their names there."""
    session = startup.session
    triggers = Triggers(session, drop=startup.profile.consumer.triggers == "drop", passes=passes)
    return SchemaCache(session, triggers, passes=passes)


def applier_of(
    startup: Startup, checkpoint: Checkpoint, ledger: DdlLedger, *, passes: Callable[[Uri], bool], copied: Copied
) -> Applier:
    """The stages that apply: batches are prepared, and executed serially or in parallel, row by row where they fail.

    ``passes(uri)`` says which tables are replicated, by their names on the follower.
    """
    session, settings, read_ahead = startup.session, startup.profile.consumer, startup.source.read_ahead
    tables = schema_cache(startup, passes)
    differences = RowDifferences(session, tables) if settings.before_images == "compare" else None
    row_by_row = RowByRow(
        session,
        tables,
        on_conflict=settings.on_conflict,
        differences=differences,
        skips=ledger.skips,
        note=ledger.skip,
    )
    chunks = Chunks(session, tables, row_by_row, skips=ledger.skips, note=ledger.skip)
    execution = Execution(
        SerialExecutor(session, row_by_row, chunks, read_ahead=read_ahead),
        ParallelExecutor(session, connections=settings.connections, read_ahead=read_ahead),
    )
    preparation = Preparation(
        session,
        ledger,
        tables,
        differences=differences,
        passes=lambda record: passes(record.uri) and not copied.has(record),
        checkpoint=checkpoint,
    )
    committed = Committed(session, checkpoint)
    calls = startup.calls
    return Applier(session, preparation, execution, committed=committed, retry=calls.retry, stop=calls.stop)
