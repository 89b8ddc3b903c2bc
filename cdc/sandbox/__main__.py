"""cdc-sandbox: runs a leader, a follower and Kafka on this machine, without Docker and without root."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from cdc.sandbox.demo import demo
from cdc.sandbox.servers import NEWEST, OLDEST, Servers
from cdc.service.command_line import add_common_options
from cdc.service.process import exit_status

__all__ = ["main"]

_EPILOG = """\
exit status: 0 done, 1 not all of the servers run (status), 2 something on this machine must change first,
3 the demo found a promise broken, 4 a server is gone

MySQL comes from a mysqld on PATH (8.0 or newer), else from Debian's packages, unpacked; Kafka comes from Maven Central.
Downloads are kept in $CDC_CACHE (default ~/.cache/cdc). A JDK 17 or newer is needed."""
_EXAMPLES = """
cdc-sandbox demo
cdc-sandbox up --leader mariadb
cdc-sandbox up --mysql 8.0 --dir old
cdc-sandbox down --wipe
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    commands = {"up": _up, "down": _down, "status": _status, "demo": _demo}
    try:
        return exit_status(lambda: commands[options.command](options), program="cdc-sandbox")
    except KeyboardInterrupt:
        print("cdc-sandbox: interrupted; everything it started is stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-sandbox",
        description=__doc__,
        epilog=_EPILOG,
    )
    add_common_options(parser, examples=_EXAMPLES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = _add_up(commands)
    down = commands.add_parser("down", help="stop the servers that `up` started")
    down.add_argument("--wipe", action="store_true", help="remove the servers' data too")
    status = commands.add_parser("status", help="say which of the servers run")
    for command in (up, down, status):
        command.add_argument(
            "--dir", type=Path, default=_state_folder(), help="the folder of the servers (default: %(default)s)"
        )
    show = commands.add_parser("demo", help="replicate the tutorial on servers of its own and audit it; ends by itself")
    show.add_argument(
        "--dir", type=Path, help="an empty or new folder for profiles and report (default: a temporary one)"
    )
    return parser


def _add_up(commands: Any) -> argparse.ArgumentParser:
    up: argparse.ArgumentParser = commands.add_parser(
        "up", help="start the servers; they keep running until `down`, and keep their data"
    )
    for name, port in (("leader", 3080), ("follower", 3090), ("kafka", 9092)):
        up.add_argument(
            f"--{name}-port", type=int, default=port, metavar="PORT", help="default: %(default)s; 0: any free one"
        )
    up.add_argument(
        "--leader",
        choices=("mysql", "mariadb"),
        default="mysql",
        help="the kind of the leader (default: %(default)s); MariaDB 10.11 comes from Debian's packages",
    )
    up.add_argument(
        "--mysql",
        choices=(NEWEST, OLDEST),
        default=NEWEST,
        help="the version of the MySQL servers (default: %(default)s); 8.0: the last of Debian, or $CDC_MYSQL_80",
    )
    up.add_argument(
        "--secure",
        action="store_true",
        help="TLS only, logins and ACLs of Kafka, and users of MySQL with the least privileges, as in production",
    )
    return up


def _state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "cdc-sandbox"


def _up(options: argparse.Namespace) -> int:
    servers = Servers(
        options.dir,
        leader=options.leader,
        mysql=options.mysql,
        leader_port=options.leader_port,
        follower_port=options.follower_port,
        kafka_port=options.kafka_port,
        secure=options.secure,
    )
    servers.start(outlive=True, say=lambda line: print(f"started {line}", flush=True))
    print(f"\n{servers.directions()}\n\nStop them with: {_again('down', options.dir)}")
    return 0


def _down(options: argparse.Namespace) -> int:
    servers = Servers.found(options.dir)
    stopped = servers.stop()
    print(f"stopped {', '.join(stopped)}" if stopped else "nothing ran")
    if options.wipe:
        servers.wipe()
        print(f"removed their data in {options.dir}")
    return 0


def _status(options: argparse.Namespace) -> int:
    status = Servers.found(options.dir).status()
    for name, running in status.items():
        print(f"{name:26} {'runs' if running else 'does not run'}")
    return 0 if all(status.values()) else 1


def _demo(options: argparse.Namespace) -> int:
    return demo(options.dir)


def _again(command: str, folder: Path) -> str:
    return f"cdc-sandbox {command}" + ("" if folder == _state_folder() else f" --dir {folder}")


if __name__ == "__main__":
    sys.exit(main())
