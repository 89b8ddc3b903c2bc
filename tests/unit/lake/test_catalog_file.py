"""The file of a lake's catalog: what it may have, which names tables get, and what its identity shows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import UserError
from cdc.lake.catalog_file import HIVE, REST, CatalogFile, load_catalog
from cdc.lake.folder import CHANGES, LakeFolder, State, folder
from cdc.lake.formats.iceberg_catalog import SharedCatalog
from cdc.spark.folders import LocalFolder

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "catalog.toml"
    file.write_text(text)
    return file


def test_properties_are_those_of_iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_TOKEN", "of-the-environment")
    file = load_catalog(
        written(
            tmp_path,
            'type = "rest"\nuri = "https://catalog:8181/api"\nwarehouse = "lake"\ntoken = "${env:CATALOG_TOKEN}"\n'
            's3.path-style-access = true\n"rest.client.max-retries" = 3\nnamespace = "raw.{database}"\n',
        )
    )
    assert file.properties == {
        "uri": "https://catalog:8181/api", "warehouse": "lake", "token": "of-the-environment",
        "s3.path-style-access": "true", "rest.client.max-retries": "3",
    }  # fmt: skip
    assert file.settings().items() > {**file.properties, "type": "rest", "cache-enabled": "false"}.items()
    assert int(file.settings()["rest.client.socket-timeout-ms"]) > 0, "without it Iceberg waits for ever"
    assert file.identity() == "rest https://catalog:8181/api warehouse lake namespace raw.{database}"
    assert "of-the-environment" not in repr(file)
    assert file.identifier("shop/orders") == "raw.shop.orders"
    assert file.identifier(f"{CHANGES}/shop/orders") == "raw.shop_history.orders"
    assert file.dropped("shop/orders", 9) == "raw.shop_dropped.orders~9"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('type = "glue"\nuri = "https://a"', "'glue' is no supported type"),
        ('uri = "https://a"', "'' is no supported type"),
        ('type = "rest"', "no address"),
        ('type = "rest"\nuri = "thrift://a:9083"', "no address"),
        ('type = "hive"\nuri = "http://a"', "no address"),
        ('type = "rest"\nuri = "http://[::1"', "no address"),
        ('type = "rest"\nuri = "http://a:99999"', "no address"),
        ('type = "rest"\nuri = "http://a:b"', "no address"),
        ('type = "rest"\nuri = "http://a /b"', "no address"),
        ('type = "rest"\nuri = "https://user:sekrit-word@a"', "can't have a user"),
        ('type = "rest"\nuri = "https://a/?token=sekrit-word"', "can't have a user"),
        ('type = "rest"\nuri = "https://a"\ncache-enabled = true', "sets this property itself"),
        ('type = "rest"\nuri = "https://a"\ncatalog-impl = "x"', "sets this property itself"),
        ('type = "rest"\nuri = "https://a"\ntoken = ["sekrit-word"]', "neither a string"),
        ('type = "rest"\nuri = "https://a"\nnamespace = "a..b"', "is no namespace"),
        ('type = "hive"\nuri = "thrift://a:9083"\nnamespace = "raw.{database}"', "Hive can't have"),
        ('type = "rest"\nuri = ', "broken TOML"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as error:
        load_catalog(written(tmp_path, text))
    assert "sekrit-word" not in str(error.value)


@given(database=NAMES, table=NAMES, namespace=st.sampled_from(["{database}", "a_name_of_a_namespace_{database}"]))
def test_hive_takes_each_name(database: str, table: str, namespace: str) -> None:
    of_hive = CatalogFile(HIVE, {"uri": "thrift://a:9083"}, namespace)
    for each in (folder(database, table), f"{CHANGES}/{folder(database, table)}"):
        levels = of_hive.identifier(each).split(".")
        assert len(levels) == 2
        assert all(part.isascii() and part.replace("_", "a").isalnum() for part in levels)
        assert all(part == part.lower() and len(part) <= 128 for part in levels)


@given(names=st.lists(st.tuples(NAMES, NAMES), max_size=6, unique=True), kind=st.sampled_from([REST, HIVE]))
def test_tables_of_one_name_are_all_refused(names: list[tuple[str, str]], kind: str) -> None:
    file = CatalogFile(kind, {"uri": "x://a"})
    shared = object.__new__(SharedCatalog)
    shared._file = file
    folders = [folder(*name) for name in names]
    refused = shared.one_name(folders)
    kept = [file.identifier(each) for each in folders if each not in refused]
    assert len(set(kept)) == len(kept)
    assert all([file.identifier(other) for other in folders].count(file.identifier(each)) > 1 for each in refused)
    assert not (kind == REST and refused)


def test_hive_has_no_upper_case() -> None:
    shared = object.__new__(SharedCatalog)
    shared._file = CatalogFile(HIVE, {"uri": "thrift://a:9083"})
    refused = shared.one_name(["shop/Orders", "shop/orders", "shop/items"])
    assert refused.keys() == {"shop/Orders", "shop/orders"}
    assert refused["shop/Orders"].code == "CDC-LAKE-CATALOG-NAMES"


def test_a_lake_stays_in_its_catalog(tmp_path: Path) -> None:
    catalog = CatalogFile(REST, {"uri": "https://a", "token": "sekrit-word"})
    own = {"format": "iceberg", "catalog": catalog.identity()}
    lake = LakeFolder(LocalFolder(tmp_path), own)
    lake.load()
    owner = lake.owner()
    lake.close()
    for other, told in (
        ({"format": "iceberg"}, "made with catalog 'rest https://a', now it is 'none'"),
        ({**own, "catalog": "rest https://b"}, "made with catalog 'rest https://a', now it is 'rest https://b'"),
    ):
        lake = LakeFolder(LocalFolder(tmp_path), other)
        with pytest.raises(UserError, match=told) as error:
            lake.load()
        assert error.value.code == "CDC-LAKE-OTHER-SETTINGS"
        lake.close()
    lake = LakeFolder(LocalFolder(tmp_path), own)
    assert lake.load() == State()
    assert lake.owner() == owner
    lake.close()
    assert not any("sekrit-word" in each.read_text() for each in tmp_path.rglob("*") if each.is_file())


def test_a_lake_without_a_catalog_gets_none(tmp_path: Path) -> None:
    """A lake of before this option is one without a catalog."""
    lake = LakeFolder(LocalFolder(tmp_path), {"format": "iceberg"})
    lake.load()
    lake.close()
    lake = LakeFolder(LocalFolder(tmp_path), {"format": "iceberg", "catalog": "rest https://a"})
    with pytest.raises(UserError, match="made with catalog 'none'"):
        lake.load()
    lake.close()
