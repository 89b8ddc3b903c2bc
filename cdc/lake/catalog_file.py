"""Reads the file that the option ``--catalog`` names: the Iceberg catalog in which a lake keeps its tables, and the
names of the tables there.

The file is TOML with the properties that Iceberg itself has for catalogs, such as ``uri``, ``warehouse`` and ``token``.
References to secrets are replaced as in a profile. Only ``namespace`` is a key of this program.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from cdc.config.toml_tables import parsed, resolved, text_of
from cdc.errors import UserError
from cdc.lake.folder import CHANGES

__all__ = ["HIVE", "REST", "CatalogFile", "load_catalog"]

REST, HIVE = "rest", "hive"
_DATABASE = "{database}"
_OWN = frozenset({"cache-enabled", "catalog-impl"})  # properties that this program sets, or that contradict ``type``
_CHANGES, _DROPPED = "_history", "_dropped"  # added to the last level of a namespace
# Iceberg waits for an answer for ever by default, and no signal ends that.
_PATIENCE = {"rest.client.socket-timeout-ms": "300000"}
_LONGEST = 100  # Hive's names of databases have up to 128 characters


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A catalog of ``kind`` "rest" or "hive" with Iceberg's ``properties``, which may be secrets. ``namespace`` is the
    namespace of a table, in which ``{database}`` stands for the name of its database.
    """

    kind: str
    properties: Mapping[str, str] = field(repr=False)
    namespace: str = _DATABASE

    @property
    def uri(self) -> str:
        """The address of the catalog."""
        return self.properties["uri"]

    def settings(self) -> dict[str, str]:
        """Returns all properties with which Iceberg opens the catalog."""
        patience = _PATIENCE if self.kind == REST else {}
        return {**patience, **self.properties, "type": self.kind, "cache-enabled": "false"}

    def identity(self) -> str:
        """Describes the place of the tables, without secrets. Another place has another identity."""
        warehouse = self.properties.get("warehouse")
        place = f"{self.kind} {self.uri}{f' warehouse {warehouse}' if warehouse else ''}"
        return place if self.namespace == _DATABASE else f"{place} namespace {self.namespace}"

    def identifier(self, folder: str) -> str:
        """Returns the table's name in the catalog, with dots between its levels. ``folder`` is the table's folder in
        lakes without a catalog, so it is another one for each table; two identifiers may be the same.
        """
        *kind, database, table = folder.split("/")
        return f"{self._namespace(database, _CHANGES if kind == [CHANGES] else '')}.{self._name(table)}"

    def dropped(self, folder: str, sequence: int) -> str:
        """Returns the name that a table gets once the leader's table was dropped before ``sequence``."""
        database, table = folder.split("/")
        return f"{self._namespace(database, _DROPPED)}.{self._name(f'{table}~{sequence}')}"

    def _namespace(self, database: str, suffix: str) -> str:
        text = self.namespace.replace(_DATABASE, self._name(database))
        if self.kind == HIVE and len(text) > _LONGEST + 17:
            text = f"{text[:_LONGEST]}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        return text + suffix

    def _name(self, encoded: str) -> str:
        """Converts a name of a folder to a name for this kind of catalog. Hive has no upper case, and only letters,
        digits and ``_``.
        """
        if self.kind != HIVE:
            return encoded
        text = encoded.lower().replace("-", "_2d_").replace("~", "_")
        if len(text) <= _LONGEST:
            return text
        return f"{text[:_LONGEST]}_{hashlib.sha256(encoded.encode()).hexdigest()[:16]}"


def load_catalog(path: Path) -> CatalogFile:
    """Loads the file at ``path``. Raises UserError."""
    content = resolved(parsed(text_of(path, key="--catalog"), name=str(path)))
    properties = dict(_flat(content, path))
    kind, namespace = properties.pop("type", ""), properties.pop("namespace", _DATABASE)
    if kind not in (REST, HIVE):
        raise _invalid(path, "type", f"{kind!r} is no supported type of a catalog", 'type = "rest", or "hive"')
    for key in sorted(_OWN & properties.keys()):
        raise _invalid(path, key, "cdc-lake sets this property itself", "leave it out")
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", namespace.replace(_DATABASE, "d")):
        hint = 'letters, digits, _, - and {database}, as in "raw_{database}", with dots between levels'
        raise _invalid(path, "namespace", f"{namespace!r} is no namespace", hint)
    if kind == HIVE and not re.fullmatch("[a-z0-9_]+", namespace.replace(_DATABASE, "d")):
        hint = 'lower-case letters, digits, _ and {database}, as in "raw_{database}"'
        raise _invalid(path, "namespace", f"Hive can't have the namespace {namespace!r}", hint)
    _require_address(path, properties.get("uri", ""), kind)
    return CatalogFile(kind, properties, namespace)


def _require_address(path: Path, uri: str, kind: str) -> None:
    """Raises UserError if ``uri`` is no address, or has parts that may be secrets: it becomes part of the lake's state,
    and of messages.
    """
    parts = [_address(each) for each in (uri.split(",") if kind == HIVE else [uri])]
    if not all(part.netloc and part.scheme in (("thrift",) if kind == HIVE else ("http", "https")) for part in parts):
        example = "thrift://metastore:9083" if kind == HIVE else "https://catalog:8181/api"
        raise _invalid(path, "uri", "it is no address of such a catalog", f'uri = "{example}"')
    if any(part.username is not None or part.query or part.fragment for part in parts):
        hint = "write a secret as a property, such as token or credential"
        raise _invalid(path, "uri", "the address of a catalog is shown, so it can't have a user or parameters", hint)


def _address(uri: str) -> SplitResult:
    """Parses an address; returns an empty one if it is none."""
    try:
        found = urlsplit(uri)
        is_one = found.port != 0 and re.fullmatch("[!-~]+", uri) is not None
    except ValueError:  # of the port, or of an address with brackets
        is_one = False
    return found if is_one else urlsplit("")


def _flat(content: Mapping[str, Any], path: Path, before: str = "") -> Iterator[tuple[str, str]]:
    """Yields the properties; TOML makes tables of names with dots, unless they have quotes."""
    for key, value in content.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, path, f"{name}.")
        elif isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, str | int):
            yield name, str(value)
        else:
            raise _invalid(path, name, "it is neither a string, a whole number, nor true or false", "write a string")


def _invalid(path: Path, key: str, what: str, hint: str) -> UserError:
    return UserError(what, code="CDC-LAKE-CATALOG-FILE", where=f"key {key} of {path}", hint=hint)
