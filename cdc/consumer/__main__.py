"""cdc-consumer: applies a leader's records from Kafka to the follower, exactly once."""

import argparse
import sys
from pathlib import Path

from cdc.consumer.pipeline import run
from cdc.profile import load
from cdc.service import exit_status, setup_logging, stop_on_signals

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
    setup_logging(level=profile.log.level, form=profile.log.format)
    run(profile, until_current=until_current, stop=stop_on_signals())
    return 0


if __name__ == "__main__":
    sys.exit(main())
