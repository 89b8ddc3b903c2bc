"""Accesses a folder at an address that Hadoop's FileSystem supports, such as hdfs://… or s3a://…, through Spark's JVM.

On HDFS a file is replaced by a rename, and the lock is the lease of a file's writer, which HDFS revokes a minute after
the writer ended. An object store has no atomic rename, but an object appears as a whole once it was written. So objects
are overwritten directly. An object store has no locks either: the user must start only one writer.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc.spark.folders import ASIDE, Entry, Folder, InUseError, LocalFolder, Lock
from cdc.spark.private_names import Py4JError, Py4JJavaError, hadoop_settings, java_class, new_array

__all__ = ["HadoopFolder", "folder_at"]

_HDFS = frozenset({"hdfs", "viewfs"})
_IN_USE = ("AlreadyBeingCreatedException", "RecoveryInProgressException", "FileAlreadyExistsException")
_BUFFER = 64 << 10  # bytes
_PACKAGE = "org.apache.hadoop.fs."


class HadoopFolder:
    """The folder at ``address``, an implementation of ``folders.Folder``."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        """Raises OSError if Hadoop does not know the scheme of the address."""
        self._spark = spark
        self._address = address.rstrip("/")
        self._settings = hadoop_settings(spark)
        with _as_os_error():
            root = self._path("")
            self._files = root.getFileSystem(self._settings)
            self._is_hdfs = str(self._files.getUri().getScheme()) in _HDFS

    @property
    def address(self) -> str:
        """The folder's address."""
        return self._address

    def at(self, name: str) -> str:
        """Returns the address of the file or folder ``name``."""
        return f"{self._address}/{name}" if name else self._address

    def uri(self, name: str) -> str:
        """Returns the address of ``name``, unescaped, as Hadoop expects it."""
        return self.at(name)

    def exists(self, name: str) -> bool:
        """Whether the file or folder exists."""
        with _as_os_error():
            return bool(self._files.exists(self._path(name)))

    def read(self, name: str) -> str | None:
        """Returns the text of a file, or None if it does not exist."""
        if not self.exists(name):
            return None
        with _as_os_error():
            stream = self._files.open(self._path(name))
            try:
                return bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()

    def names(self, name: str) -> list[str]:
        """Returns the names of the entries in a folder; empty if the folder does not exist."""
        return sorted(each.name for each in self.entries(name))

    def entries(self, name: str) -> list[Entry]:
        """Returns the entries of a folder; empty if the folder does not exist."""
        path = self._path(name)
        with _as_os_error():
            found = self._files.listStatus(path) if self._files.exists(path) else []
            return [Entry(str(each.getPath().getName()), each.isDirectory(), each.getLen()) for each in found]

    def make(self, name: str, *, private: bool = False) -> None:
        """Creates a folder and its parents; if ``private`` is true, only the owner may read the folder."""
        path = self._path(name)
        with _as_os_error():
            if not self._files.exists(path):
                self._files.mkdirs(path)
                if private:
                    self._files.setPermission(path, self._permission("700"))

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Replaces the contents of a file with ``text``."""
        target = self._path(name)
        aside = self._path(f"{name}{ASIDE}") if self._is_hdfs else target
        with _as_os_error():
            copies, block = self._files.getDefaultReplication(aside), self._files.getDefaultBlockSize(aside)
            mode = self._permission("600" if private else "666")  # Hadoop subtracts its umask
            stream = self._files.create(aside, mode, True, _BUFFER, copies, block, None)
            stream.write(text.encode())
            if self._is_hdfs:
                stream.hsync()
            stream.close()
            if self._is_hdfs:
                self._renamed_over(aside, target)

    def flush(self, name: str) -> None:
        """Does nothing: Hadoop's file system stores a file when it is closed."""

    def move(self, name: str, to: str) -> None:
        """Renames the folder ``name`` to ``to``; an existing folder ``to`` is removed first."""
        with _as_os_error():
            target = self._path(to)
            self._files.mkdirs(target.getParent())
            if self._files.exists(target):
                self._files.delete(target, True)
            if not self._files.rename(self._path(name), target):
                raise OSError(f"cannot rename {self.at(name)} to {self.at(to)}")

    def remove(self, name: str) -> None:
        """Removes a folder with its contents."""
        with _as_os_error():
            self._files.delete(self._path(name), True)

    def tighten(self, *names: str) -> None:
        """Does nothing: only the owner has permissions on a private folder from its creation on."""

    def lock(self, name: str) -> Lock:
        """Acquires the lease of a file, if the file system has leases. Raises InUseError if another process holds the
        lease."""
        if not self._is_hdfs:
            return _NoLock()
        path = self._path(name)
        try:
            with _as_os_error():
                there = self._files.exists(path)
                stream = self._files.append(path) if there else self._files.create(path, False)
                return _Lease(stream)
        except OSError as error:
            if any(each in str(error) for each in _IN_USE):
                raise InUseError("if that was killed, its lock ends within two minutes") from None
            raise

    def _renamed_over(self, aside: Any, target: Any) -> None:
        # FileContext is used, since FileSystem.rename does not replace an existing file.
        option = self._class("Options$Rename")
        options = new_array(self._spark, option, 1)
        options[0] = option.OVERWRITE
        context = self._class("FileContext").getFileContext(target.toUri(), self._settings)
        context.rename(aside, target, options)

    def _path(self, name: str) -> Any:
        return self._class("Path")(self.at(name))

    def _permission(self, mode: str) -> Any:
        return self._class("permission.FsPermission")(mode)

    def _class(self, name: str) -> Any:
        return java_class(self._spark, _PACKAGE + name)


class _Lease:
    """The lease of a file, which Hadoop's client renews while the stream to the file is open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def close(self) -> None:
        """Releases the lease. If that fails, for example after the JVM has ended, the lease expires by itself."""
        with suppress(Py4JError):
            self._stream.close()


class _NoLock:
    """Stands for the lock on a file system without leases."""

    def close(self) -> None:
        """Does nothing."""


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise OSError(str(error.java_exception.toString()).partition("\n")[0]) from None


def folder_at(spark: SparkSession, given: Path | str | Folder) -> Folder:
    """Returns the folder at a path, or at a URI of a file system that Hadoop's API can access."""
    if isinstance(given, Path):
        return LocalFolder(given.absolute())
    if not isinstance(given, str):
        return given
    if "://" not in given or given.startswith("file:///"):
        return LocalFolder(Path(given.removeprefix("file://")).absolute())
    return HadoopFolder(spark, given)
