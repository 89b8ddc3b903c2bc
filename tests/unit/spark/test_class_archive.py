import os
import time
from pathlib import Path

from cdc.spark.job.launch import archivable, class_archive, mapped, written


def test_an_archive_belongs_to_one_jdk_and_one_set_of_jars(tmp_path: Path) -> None:
    pyspark, java = tmp_path / "pyspark", tmp_path / "java"
    (pyspark / "jars").mkdir(parents=True)
    (pyspark / "jars/one.jar").write_text("1")
    java.write_text("")
    places = {"default": {"HOME": str(tmp_path)}, "named": {"CDC_CACHE": str(tmp_path / "cache")}}

    def at(place: str, *jars: Path) -> Path:
        return class_archive(places[place], java=java, home=pyspark, jars=jars)

    assert at("default").parent == tmp_path / ".cache/cdc/class-archives"
    assert at("named").parent == tmp_path / "cache/class-archives"
    found = [at("named"), at("named")]
    (pyspark / "jars/two.jar").write_text("2")
    found.append(at("named"))
    os.utime(java, (1, 1))
    found += [at("named"), at("named", pyspark / "jars/one.jar")]
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_an_archive_is_written_once_and_then_mapped(tmp_path: Path) -> None:
    archive, old, newer = (tmp_path / "archives" / name for name in ("this.jsa", "old.jsa", "newer.jsa"))
    archive.parent.mkdir()
    for each, days in ((old, 31), (newer, 29)):
        each.write_text("")
        os.utime(each, (time.time() - days * 86_400,) * 2)
    assert mapped(archive) == []
    with written(archive) as options:
        (aside,) = (Path(option.partition("=")[2]) for option in options if "ArchiveClassesAtExit" in option)
        aside.write_text("classes")
        assert not archive.exists()
    assert archive.read_text() == "classes"
    assert sorted(archive.parent.iterdir()) == sorted([archive, newer])
    os.utime(archive, (1, 1))
    assert mapped(archive)[0] == f"-XX:SharedArchiveFile={archive}"
    assert archive.stat().st_mtime > 1, "an archive in use looked unused"
    with written(archive) as options:
        assert options == []


def test_an_archive_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with written(tmp_path / "file/this.jsa") as options:
        assert options == []
    with written(tmp_path / "folder/this.jsa") as options:  # the JVM was killed
        assert options
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_class_path_with_files_in_a_folder_is_not_archived(tmp_path: Path) -> None:
    def possible(home: str = "pyspark", **environment: str) -> bool:
        return archivable(environment, home=tmp_path / home)

    for folder in ("empty", "full", "pyspark/conf", "spark/conf"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "full/spark-defaults.conf").write_text("")
    full = str(tmp_path / "full")
    assert possible()
    assert possible(SPARK_CONF_DIR=str(tmp_path / "empty"), HADOOP_CONF_DIR=str(tmp_path / "none"))
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH"):
        assert not possible(**{name: full}), name
    (tmp_path / "spark/conf/log4j2.properties.template").write_text("")
    assert not possible("spark")
    (tmp_path / "pyspark/conf/spark-env.sh").write_text("")
    assert not possible()
    with written(tmp_path / "archives/this.jsa", possible=False) as options:
        assert options == []
