"""Runs drills by their names, all by default; prints a line for each kind of kill, and fails if anything was lost."""

import argparse
import importlib
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

DRILLS = ("standby", "leader", "follower", "brokers", "group", "promote")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.drills", description=__doc__)
    parser.add_argument("drills", nargs="*", metavar="DRILL", help=f"{', '.join(DRILLS)}; by default all")
    parser.add_argument("--kills", type=int, default=50, help="kills in each drill")
    given = parser.parse_args()
    names = [name for each in given.drills for name in each.split(",") if name] or DRILLS
    if unknown := sorted(set(names) - set(DRILLS)):
        parser.error(f"no such drill: {', '.join(unknown)}")
    good = True
    for name in names:
        drill = importlib.import_module(f"bench.drills.{name}").drill
        # Short, since the path of a server's socket has at most 100 bytes.
        with tempfile.TemporaryDirectory(prefix="drill-") as folder, ExitStack() as opened:
            for outcome in drill(Path(folder), opened, kills=given.kills):
                print(f"{name}: {outcome}", flush=True)
                good = good and outcome.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
