"""Renders a report as report.html, from the template page.html: one file that loads nothing, for screen and print."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from cdc.spark.report.outcome import Audit
from cdc.spark.report.printable import cut, visible
from cdc.spark.report.sections import document
from cdc.spark.state.history import PastVerdict

__all__ = ["page", "template"]

# The page contains no script and loads nothing; this policy makes the browser enforce it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(audit: Audit, verdicts: Sequence[PastVerdict] = ()) -> str:
    """Writes the whole report as HTML. ``verdicts`` are the verdicts of all audits on the same state, oldest first."""
    # Only this text becomes markup without escaping: it is a file of this program.
    style = Markup(_file("page.css"))
    return template(_file("page.html")).render(document=document(audit, verdicts), policy=_POLICY, style=style)


@cache
def template(text: str) -> Template:
    """Compiles a template that makes all values visible (``printable.visible``) and escapes them."""
    environment = Environment(
        autoescape=True, finalize=_shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cut"] = cut
    return environment.from_string(text)


def _shown(value: Any) -> Any:
    """Makes ``value`` visible before Jinja2 escapes it, unless it is the result of a macro, which is markup already."""
    return value if isinstance(value, Markup) else visible(str(value))


def _file(name: str) -> str:
    return files("cdc.spark.report").joinpath(name).read_text(encoding="utf-8")
