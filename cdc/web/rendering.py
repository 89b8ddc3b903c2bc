"""Renders templates; escapes all values, and makes invisible characters visible."""

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cdc import __version__
from cdc.model.values import visible
from cdc.spark.report.printable import cut
from cdc.sql.tokens import excerpt
from cdc.web.overview.figures import clock, count, duration, moment, size

__all__ = ["environment", "event_text", "render"]

_LONG_NAME = 12  # the names of servers with more characters are shortened


def _shown(value: Any) -> Any:
    """Makes invisible characters visible before Jinja2 escapes ``value``, unless it is markup."""
    return value if isinstance(value, Markup) else visible(str(value))


def _lines(text: str) -> Markup:
    """Escapes a text, and keeps its line breaks and tabs."""
    return escape(visible(text, keep="\n\t"))


def _short_gtid(gtid: str) -> str:
    """Shortens a GTID to the beginning of the server's UUID and the number of the transaction."""
    server, colon, number = gtid.partition(":")
    return f"{server[:8]}…{colon}{number}" if len(server) > _LONG_NAME else gtid


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("cdc.web"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clock": clock, "count": count, "duration": duration, "excerpt": excerpt, "gtid": _short_gtid, "lines": _lines,
        "moment": moment, "short": cut, "size": size,
    }  # fmt: skip
    made.globals["version"] = __version__
    return made


environment = _environment()


def render(template: str, **values: Any) -> str:
    """Renders a template with the given values."""
    return environment.get_template(template).render(**values)


def event_text(name: str, value: Any) -> str:
    """Writes a server-sent event whose data are ``value`` as JSON, on one line."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"
