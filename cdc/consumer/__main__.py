"""cdc-consumer: applies a leader's records from Kafka to the follower, exactly once."""

import argparse
import gc
import logging
import sys
from functools import partial
from pathlib import Path

from cdc.brokers import Brokers
from cdc.consumer.activity import Activity
from cdc.consumer.pipeline import run
from cdc.outside import shown
from cdc.profile import load
from cdc.retry import Retry
from cdc.service import event, exit_status, setup_logging, stop_on_signals

__all__ = ["main"]

_EPILOG = """\
The profile's [database] is the follower, mysql_resource_name the leader whose records are applied.
What has been applied stands in the follower, in cdc.checkpoint: start and stop it at will, nothing is lost or repeated.

exit status: 0 done; 2 something must be changed first; 3 stopped to keep a promise (a gap, a conflict under "stop", a
row or statement that the follower refuses); 4 a server is gone and consumer.retry_seconds are over
"""


def main() -> int:
    """Run the program; the exit status."""
    parser = argparse.ArgumentParser(
        prog="cdc-consumer",
        description="Apply the records of a leader's topic to the follower until SIGTERM or Ctrl-C.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="the profile, a TOML file")
    parser.add_argument(
        "--until-current", action="store_true", help="end once everything that is in the topic now is applied"
    )
    arguments = parser.parse_args()
    return exit_status(
        lambda: _consume(arguments.profile, until_current=arguments.until_current), program="cdc-consumer"
    )


def _consume(path: Path, *, until_current: bool) -> int:
    profile = load(path)
    line = setup_logging(level=profile.log.level, form=profile.log.format)
    log = partial(event, logging.getLogger("cdc.consumer"))
    stop = stop_on_signals()
    retry = Retry(seconds=profile.consumer.retry_seconds, log=log, stop=stop)
    # Records are millions of dicts, and never in a cycle: at the usual threshold a third of the time went into looking.
    gc.set_threshold(100_000, 50, 1000)
    brokers = Brokers(profile.kafka.properties())
    activity = Activity(retry=retry, brokers=brokers, commits=profile.kafka.topics().commits, follower=profile.database)
    with shown(activity, metrics=profile.metrics, line=line, log=log):
        run(profile, retry=retry, activity=activity, until_current=until_current, stop=stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
