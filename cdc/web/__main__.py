"""The program cdc-web: serves a page that shows streams live, and a browser for their topics."""

import argparse
import functools
import logging
import sys
from importlib.util import find_spec
from pathlib import Path

from cdc.config import profile
from cdc.config.profile import ServerAddress
from cdc.errors import UserError
from cdc.service.command_line import add_common_options
from cdc.service.logs import event, setup_logging
from cdc.service.process import exit_status, stop_on_signals

__all__ = ["main"]

_EPILOG = """\
PROFILE is that of a producer or of a consumer, and there may be several of both: each stream is shown with its leader
and followers. Nothing is written to any server. The keys of [web] are in docs/profile.md.

exit status: 0 ended by SIGTERM or Ctrl-C; 2 something must be changed first
"""
_EXAMPLES = """\
cdc-web producer_profile.toml consumer_profile.toml    the page, at http://127.0.0.1:9000
cdc-web producer_profile.toml consumer_profile.toml --report report    with the verdict of the last audit
cdc-web producer_profile.toml --listen 10.0.0.7:9000    for others, too: the profile needs web.password_env
"""
_NEEDED = ("starlette", "uvicorn")


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="cdc-web",
        description="Serve a page: streams live, from the leader to its followers, and a browser of their topics.",
        epilog=_EPILOG,
    )
    parser.add_argument("profiles", type=Path, nargs="+", metavar="PROFILE", help="TOML file, of producer or consumer")
    parser.add_argument("--listen", metavar="HOST:PORT", help="the page's address (default 127.0.0.1:9000)")
    parser.add_argument("--report", type=Path, metavar="DIR", help="show the audit's report in DIR")
    parser.add_argument("--check", action="store_true", help="list what must be changed first, serve nothing")
    add_common_options(parser, examples=_EXAMPLES)
    return exit_status(functools.partial(_run, parser.parse_args()), program="cdc-web")


def _run(arguments: argparse.Namespace) -> int:
    profiles = [(str(path), profile.load(path, servers=profile.BOTH_SERVERS)) for path in arguments.profiles]
    first = profiles[0][1]
    setup_logging(level=first.log.level, form=first.log.format)
    _require_extra()
    from cdc.web.program import check, serve  # this module imports packages of the extra ``web``

    log = functools.partial(event, logging.getLogger("cdc.web"))
    listen = ServerAddress.parse(arguments.listen, key="--listen") if arguments.listen else None
    if arguments.check:
        return check(profiles, listen=listen)
    serve(profiles, listen=listen, report=arguments.report, stop=stop_on_signals(log), log=log)
    return 0


def _require_extra() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(
            f"the page needs {' and '.join(missing)}",
            code="CDC-WEB-EXTRA",
            hint="in the folder of the checkout: pip install '.[web]'",
        )


if __name__ == "__main__":
    sys.exit(main())
