"""cdc-consumer on a follower that soon ends silent connections: ``python -m …impatient_consumer PROFILE``."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdc.consumer import __main__ as program
from cdc.consumer.follower import locks, session
from tests.altered.replaced import replace
from tests.harness.wait import LIMIT_SECONDS

SILENT_SECONDS = 10  # it speaks four times as often, so it may be held up for some seconds


@contextmanager
def impatient(profile: Path) -> Iterator[Path]:
    """A consumer whose server soon ends what is silent; its log."""
    path = profile.with_suffix(".log")
    with path.open("w") as log:
        process = subprocess.Popen([sys.executable, "-m", "tests.altered.impatient_consumer", profile], stderr=log)
        try:
            yield path
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_SECONDS) == 0, path.read_text()


if __name__ == "__main__":
    for module in (session, locks):
        replace(module, "SILENT_SECONDS", SILENT_SECONDS)
    sys.exit(program.main())
