"""Health: what was asked, what the answer was, and whether all is well."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Check", "verdict"]


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer: ``says`` is for the operator, whatever the answer is."""

    name: str
    ok: bool
    says: str


def verdict(checks: Iterable[Check]) -> tuple[bool, bytes]:
    """Whether every check is ok, and all of them as JSON. Nothing asked is not well."""
    asked = list(checks)
    healthy = bool(asked) and all(check.ok for check in asked)
    body = {
        "status": "ok" if healthy else "failing",
        "checks": {check.name: {"ok": check.ok, "says": check.says} for check in asked},
    }
    return healthy, json.dumps(body, ensure_ascii=False).encode() + b"\n"
