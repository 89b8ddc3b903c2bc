"""Measures what many tables cost the producer: memory, and CPU time for each transaction of one row.

    python bench/tables.py [--tables 10000] [--rounds 3] [--same]

No server is needed: table maps and rows are made here, and go through the decoder and the router. Each round writes one
row to each table in turn, and each table map has a new number, as on a server that closes and opens its tables. All
tables have other columns, with ``--same`` the same ones.
"""

import argparse
import random
import struct
import sys
import time
from itertools import count
from pathlib import Path

from cdc.config.filters import Filters
from cdc.config.topic_names import Topics
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import RowsTransaction
from cdc.producer.decode.decoder import Decoder, XaTransactions
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.sink.router import Router

# Type, metadata and a value of some columns: INT, BIGINT, DOUBLE, VARCHAR, TEXT, DATETIME, TIMESTAMP.
COLUMNS = [
    (3, b"", bytes(4)), (8, b"", bytes(8)), (5, b"\x08", bytes(8)), (15, b"\x40\0", b"\5hello"),
    (15, b"\xc8\0", b"\5world"), (252, b"\2", b"\4\0text"), (18, b"\3", b"\x99\xb2\xba\0\0\0\0"), (18, b"\0", bytes(5)),
    (17, b"\0", b"\1\2\3\4"), (17, b"\6", bytes(7)),
]  # fmt: skip
NUMERIC = (3, 5, 8)
COLLATIONS = {45: ("utf8mb4", "utf8mb4_general_ci")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000, help="(default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default %(default)s)")
    parser.add_argument("--same", action="store_true", help="all tables have the same columns")
    options = parser.parse_args()
    tables = [table(f"table_{n}", 0 if options.same else n) for n in range(options.tables)]
    decoder = Decoder(
        TableCache(
            wants_table=lambda database, name: True,
            collations=COLLATIONS,
            allow_differences=lambda database, name, columns: None,
            equal_members=lambda members, charset, collation: False,
        ),
        xa=XaTransactions({}, read_again=lambda place: ()),
        log=lambda event, **fields: None,
    )
    router = Router(
        resource="bench", topics=Topics("bench"), filters=Filters(), record_bytes=900_000, next_sequence=1
    )  # fmt: skip
    begun, numbers = megabytes(), count(100)
    for each in range(options.rounds):
        events = [transaction(described, rows, next(numbers)) for described, rows in tables]
        before = time.process_time()
        for one in events:
            (whole, *_) = decoder.decode([one])
            assert isinstance(whole, RowsTransaction)
            assert len(list(router.whole(whole))) == 1
        spent = (time.process_time() - before) / len(tables) * 1e3
        del events
        print(f"round {each + 1}: {spent:.3f} ms for each transaction, {megabytes() - begun:.0f} MB", flush=True)
    return 0


def table(name: str, seed: int) -> tuple[bytes, bytes]:
    """A table map's bytes behind the number, and those of a rows event."""
    chance = random.Random(seed)
    columns = [COLUMNS[0], *chance.choices(COLUMNS, k=chance.randrange(7, 16))]
    types, meta = bytes(kind for kind, _, _ in columns), b"".join(meta for _, meta, _ in columns)
    bitmap = (len(columns) + 7) // 8
    names = b"".join(sized(f"column_{at}".encode()) for at in range(len(columns)))
    signs = bytes((sum(kind in NUMERIC for kind in types) + 7) // 8)
    optional = b"".join(
        bytes([kind]) + sized(data) for kind, data in ((1, signs), (2, b"\x2d"), (4, names), (8, b"\0"))
    )
    head = b"\1\0" + sized(b"bench") + b"\0" + sized(name.encode()) + b"\0"
    described = head + sized(types) + sized(meta) + bytes(bitmap) + optional
    row = bytes(bitmap) + b"".join(value for _, _, value in columns)
    return described, b"\1\0\2\0" + bytes([len(columns)]) + b"\xff" * bitmap + row


def sized(data: bytes) -> bytes:
    return bytes([len(data)]) + data


def transaction(described: bytes, rows: bytes, number: int) -> list[RawEvent]:
    """A transaction of one row in the table, which has this number."""
    key = number.to_bytes(6, "little")
    bodies = {
        et.GTID: b"\0" + bytes(16) + struct.pack("<q17xQ", number, 1_700_000_000_000_000),
        et.QUERY: bytes(13) + b"\0\0\0\0\0\1" + bytes(60) + b"\0BEGIN",
        et.TABLE_MAP: key + described,
        et.WRITE_ROWS: key + rows,
        et.XID: bytes(8),
    }
    return [
        RawEvent(kind, struct.pack("<4xB14x", kind) + body, "binlog.000001", 4, 400) for kind, body in bodies.items()
    ]


def megabytes() -> float:
    """The resident size of this process (proc(5))."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    sys.exit(main())
