"""Histories of sink, recovery, readers, assembler and the follower's checkpoint, each decided by a seed: programs are
killed at any request but those with records of an open transaction, paused while others take over, and what they sent
comes late; brokers may lose what they had acknowledged. The models stand only here.

CDC_HISTORIES sets their number; a failure names its seed, which belongs into SEEDS once it is mended.
"""

import os
from dataclasses import replace

import pytest

from cdc.config.topic_names import PER_TABLE
from cdc.errors import CdcError
from cdc.producer.sink import kafka_sink
from tests.harness.seed import SEED
from tests.harness.simulated_history import History, Kind

HISTORIES = int(os.environ.get("CDC_HISTORIES", "80"))
PLAIN, CHUNKS = "plain", 4
LAYOUTS = {"single": Kind(), PLAIN: Kind(plain=True), PER_TABLE: Kind(PER_TABLE)}
LOST = 0.01
SEEDS = {
    # Readers saw a change behind a chunk that was rolled back: the change was written once more, before itself.
    "per_table chunks": [202],
    # The first entry of a stream was rolled back together with the transaction after it.
    "single chunks": [7_001_377],
    # Records of an aborted transaction, whose end was lost, became visible with the next one (61004239: a mark, too).
    "plain lost": [117, 8_001_698, 61_004_239],
    # A new epoch's first batch, or the rest of a record, came behind records that were lost after its start had seen
    # them (without Kafka transactions: 8001698, of which the producer saw a half record as a whole).
    "single lost": [15, 40, 61],
    "per_table lost": [162, 1068],
    # A follower had applied a lost chunk (61000292: not the last one), which was read again; a reader passed over
    # another record under a number that an earlier run had read.
    "per_table lost chunks": [178, 2471, 61_000_292],
    # Readers saw a record of XA, which was logged before the one that was to be written before it.
    "per_table XA": [301_114, 304_900],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_transaction_is_applied_once(layout: str) -> None:
    for seed in range(SEED, SEED + HISTORIES):
        judged(seed, LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_chunk_of_a_copy_is_applied_once(layout: str) -> None:
    kind = LAYOUTS[layout]
    for seed in [*SEEDS.get(f"{layout} chunks", ()), *range(SEED, SEED + HISTORIES // 4)]:
        judged(seed, Kind(kind.layout, kind.plain, CHUNKS))


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_brokers_lost_is_written_again_or_an_error_says_so(layout: str, commits: bool) -> None:
    """Producers and consumers run on through the loss of records, and of entries of the commit log. The follower may
    have applied what is lost.
    """
    kind = LAYOUTS[layout]
    for seed in [*SEEDS.get(f"{layout} lost", ()), *range(SEED, SEED + HISTORIES // 4)]:
        judged(seed, Kind(kind.layout, kind.plain, lost=LOST, commits=commits, through=True))


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_chunk_that_brokers_lost_is_not_replaced(layout: str, commits: bool) -> None:
    """With the entries of the commit log (``commits``) the producer does not know of it, but followers do."""
    kind = LAYOUTS[layout]
    for seed in [*(SEEDS.get(f"{layout} lost chunks", ()) if commits else ()), *range(SEED, SEED + HISTORIES // 8)]:
        judged(seed, Kind(kind.layout, kind.plain, CHUNKS, lost=LOST, commits=commits, through=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_xa_transactions_are_numbered_in_the_order_of_commits(layout: str) -> None:
    """Readers may see a record that was logged before the one that is to be written before it."""
    kind = replace(LAYOUTS[layout], xa=True)
    for seed in [*SEEDS.get(f"{layout} XA", ()), *range(SEED, SEED + HISTORIES // 8)]:
        judged(seed, kind)
        judged(seed, replace(kind, chunks=CHUNKS))


def test_entries_of_the_commit_log_are_lost_alone() -> None:
    # An entry that was rolled back counted as many records as readers see, of which one was of a copy.
    judged(9_100_447, Kind(chunks=CHUNKS, lost=LOST, records=False, commits=True))
    for kind in LAYOUTS.values():
        for seed in range(SEED, SEED + HISTORIES // 8):
            judged(seed, Kind(kind.layout, kind.plain, lost=LOST, records=False, commits=True))


def judged(seed: int, kind: Kind) -> tuple[str, str]:
    """Runs a history; returns the codes of the errors with which producer and consumer have ended."""
    with pytest.MonkeyPatch.context() as patch:
        history = History(seed, patch, kind)
        patch.setattr(kafka_sink, "_ENTRY_SECONDS", history.entry_seconds)
        try:
            history.run()
        except (AssertionError, CdcError) as error:
            raise AssertionError(f"history {seed} of {kind}: {error}") from error
        return history.outcome


def test_a_follower_of_lost_numbers_is_refused() -> None:
    """Records and entries are lost, and numbered again: 186 went on at its offsets, and applied a change twice."""
    kind = Kind(PER_TABLE, chunks=CHUNKS, lost=LOST, commits=True)
    assert judged(186, kind)[1] == "CDC-TOPIC-OTHER-RECORDS"
