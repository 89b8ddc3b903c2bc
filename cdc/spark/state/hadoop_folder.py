"""A state's folder on a file system that Hadoop's API reaches, as HDFS and S3.

On HDFS a file is replaced by a rename, and the lock is the lease of a file that this process has open: the name node
gives it to one client, and takes it back a minute after that was killed. An object store renames by copying, but an
object is there as a whole once it is closed, so it is written in its place. It has no lock.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.spark.state.folder import ASIDE, LOCK, Entry

__all__ = ["HadoopFolder"]

_HDFS = ("hdfs", "viewfs")
_PRIVATE = 0o700
_PACKAGE = "org.apache.hadoop.fs."
_HELD = ("AlreadyBeingCreatedException", "RecoveryInProgressException", "FileAlreadyExistsException")


class HadoopFolder:
    """The folder with the URI ``uri``, as ``folder.StateFolder`` describes it."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._uri = uri.rstrip("/")
        self._gateway: Any = spark.sparkContext._gateway
        self._open: Any = None
        self._settings = spark.sparkContext._jsc.hadoopConfiguration()
        with self._as_os_error():
            self._files = self._path("").getFileSystem(self._settings)
            self._is_hdfs = str(self._files.getUri().getScheme()) in _HDFS

    def __str__(self) -> str:
        return self._uri

    def uri(self, name: str) -> str:
        """Unescaped, as Hadoop has it."""
        return f"{self._uri}/{name}"

    def make(self, name: str = "") -> None:
        """Its parents as usual. A store without modes ignores them."""
        with self._as_os_error():
            if self._files.exists(self._path(name)):
                return
            self._files.mkdirs(self._path(name))
            self._files.setPermission(self._path(name), self._class("permission.FsPermission")(_PRIVATE))

    def entries(self, name: str = "") -> list[Entry]:
        """In the order of the file system."""
        with self._as_os_error():
            if not self._files.exists(self._path(name)):
                return []
            found = self._files.listStatus(self._path(name))
            return [Entry(each.getPath().getName(), each.isDirectory(), each.getLen()) for each in found]

    def text(self, name: str) -> str | None:
        """Bytes that are no text are replaced."""
        with self._as_os_error():
            if not self._files.exists(self._path(name)):
                return None
            stream = self._files.open(self._path(name))
            try:
                return bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()

    def replace(self, name: str, text: str) -> None:
        """As in this module's docstring."""
        aside = self._path(f"{name}{ASIDE}" if self._is_hdfs else name)
        with self._as_os_error():
            stream = self._files.create(aside, True)
            stream.write(bytearray(text.encode()))
            if self._is_hdfs:
                stream.hsync()
            stream.close()
            if self._is_hdfs:
                self._rename(aside, self._path(name))

    def flush(self, name: str) -> None:
        """The file system keeps what was closed."""

    def remove(self, name: str) -> None:
        """Without a way back."""
        with self._as_os_error():
            self._files.delete(self._path(name), True)

    def tighten(self, *names: str) -> None:
        """Its own folder was made for its owner alone."""

    def lock(self) -> None:
        """As in this module's docstring."""
        if not self._is_hdfs:
            return
        path = self._path(LOCK)
        try:
            create = not self._files.exists(path)
            self._open = self._files.create(path, False) if create else self._files.append(path)
        except Py4JJavaError as error:
            told = str(error.java_exception.toString())
            if not any(each in told for each in _HELD):
                raise OSError(told.partition("\n")[0]) from None
            raise UserError(
                "another audit uses the state",
                where=f"option --state {self}",
                hint="if that one was killed, its lock ends within two minutes: try again then",
            ) from None

    def close(self) -> None:
        """Release the lock. Where that fails, as after the end of the JVM, it ends by itself."""
        if self._open is not None:
            with suppress(Py4JError):
                self._open.close()

    def _rename(self, source: Any, target: Any) -> None:
        """Only this interface replaces a file that is there, in one step."""
        option = self._class("Options$Rename")
        options = self._gateway.new_array(option, 1)
        options[0] = option.OVERWRITE
        self._class("FileContext").getFileContext(source.toUri(), self._settings).rename(source, target, options)

    def _path(self, name: str) -> Any:
        return self._class("Path")(self.uri(name) if name else self._uri)

    def _class(self, name: str) -> Any:
        # By its whole name: each part of a name would be looked up in 300 jars.
        return getattr(self._gateway.jvm, _PACKAGE + name)

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise OSError(str(error.java_exception.toString()).partition("\n")[0]) from None
