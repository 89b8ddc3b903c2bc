"""A health check's result, and all results as the answer of ``/healthz``."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Check", "verdict"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check and whether it is ok; ``says`` describes the result to the operator."""

    name: str
    ok: bool
    says: str


def verdict(checks: Iterable[Check]) -> tuple[bool, bytes]:
    """Whether every check is ok, and all results as JSON. No checks at all count as failing."""
    results = list(checks)
    healthy = bool(results) and all(check.ok for check in results)
    body = {
        "status": "ok" if healthy else "failing",
        "checks": {check.name: {"ok": check.ok, "says": check.says} for check in results},
    }
    return healthy, json.dumps(body, ensure_ascii=False).encode() + b"\n"
