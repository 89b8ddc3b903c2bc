"""cdc-producer without Kafka transactions that stops itself (SIGSTOP) with records it has not sent yet, before its
COUNTth batch goes out: ``run("paused_producer", PROFILE, COUNT)``."""

import os
import signal
import sys

from cdc.producer import __main__ as program
from cdc.producer.sink import plain_writes
from tests.altered.replaced import replace

_batches = 0
_commit = plain_writes.PlainWrites.commit


def main() -> int:
    """The program, altered; its exit status where it comes to its end."""
    count = int(sys.argv.pop(2))

    def commit(self: plain_writes.PlainWrites, size: int) -> None:
        global _batches
        _batches += 1
        if _batches == count:
            os.kill(os.getpid(), signal.SIGSTOP)
        _commit(self, size)

    replace(plain_writes.PlainWrites, "commit", commit)
    replace(plain_writes, "_LINGER_MS", 60_000)
    sys.argv[0] = "cdc-producer"
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
