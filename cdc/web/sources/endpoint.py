"""Queries a program of cdc for its metrics and health, over HTTP (``[metrics]`` in its profile)."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from prometheus_client.parser import text_string_to_metric_families

from cdc.config.profile import Profile, ServerAddress
from cdc.web.sources.polled import NoAnswer

__all__ = ["EndpointAnswer", "EndpointSource", "address", "figures"]

_ANSWER_SECONDS = 10.0  # the program's health checks may wait for servers that do not answer
_MOST_BYTES = 4_000_000
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """A program's ``figures`` by the names of its Prometheus metrics, and the name and text of each ``failing`` health
    check.

    ``table`` is the table that is being copied; it is empty if there is none.
    """

    figures: dict[str, float]
    failing: dict[str, str]
    table: str = ""


def address(profile: Profile) -> ServerAddress | None:
    """Returns the address of the profile's program; None if the program serves no metrics."""
    if profile.web.metrics:
        return ServerAddress.parse(profile.web.metrics, key="web.metrics")
    metrics = profile.metrics
    return ServerAddress(_EVERYWHERE.get(metrics.host, metrics.host), metrics.port) if metrics.port else None


def figures(text: str) -> tuple[dict[str, float], str]:
    """Parses ``/metrics``: returns the values by name, and the table in the labels of the metrics of a copy."""
    found: dict[str, float] = {}
    table = ""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.labels or set(sample.labels) == {"table"}:
                found[sample.name] = sample.value
                table = sample.labels.get("table", table)
    return found, table


class EndpointSource:
    """Queries the program that listens at the address ``place``."""

    def __init__(self, place: ServerAddress) -> None:
        self._place = place

    def __call__(self) -> EndpointAnswer:
        """Queries the program. Raises NoAnswer."""
        try:
            values, table = figures(self._get("/metrics").decode("utf-8", "replace"))
            body = json.loads(self._get("/healthz"))
            failing = {str(name): str(each["says"]) for name, each in body["checks"].items() if not each["ok"]}
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise NoAnswer(f"no program answers at http://{self._place}/metrics: {reason}") from None
        return EndpointAnswer(values, failing, table)

    def _get(self, path: str) -> bytes:
        connection = HTTPConnection(self._place.host, self._place.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().read(_MOST_BYTES)
        finally:
            connection.close()
