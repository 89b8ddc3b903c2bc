"""cdc-lake, killed by itself with Spark, as all of its process group: ``killed_lake POINT NUMBER SECONDS OPTIONS…``.

It dies SECONDS after it passed POINT ("before" or "after" a table's commit, "removed", "saved") for the NUMBERth time.
"""

import os
import signal
import sys
import threading

from cdc.lake import __main__ as main
from cdc.lake import program
from cdc.service.logs import LastLine
from tests.altered.replaced import replace


def _kill() -> None:
    os.killpg(0, signal.SIGKILL)


def run() -> int:
    """The program, altered; its exit status where it comes to its end."""
    _, wanted, number, seconds, *options = sys.argv
    left = [int(number)]

    def passed(point: str, table: str) -> None:
        left[0] -= point == wanted
        if left[0] == 0 and float(seconds) == 0:
            _kill()
        elif left[0] == 0:
            threading.Timer(float(seconds), _kill).start()
            left[0] = -1

    def instead(last_line: LastLine | None) -> object:
        return passed

    replace(program, "_shown", instead)
    sys.argv = ["cdc-lake", *options]
    return main.main()


if __name__ == "__main__":
    sys.exit(run())
