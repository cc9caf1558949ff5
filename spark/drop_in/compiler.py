"""The Java text of the drop-in, compiled in the driver by the compiler that Spark ships.

What Spark calls back has to be a class of Java's, and a package without a jar has none. So the
text in `java/` is compiled on first use by Janino, which is part of every Spark, and the classes
are kept in a file of a directory that only this user can change. Its name holds PySpark's version,
the text's hash and the hash of the file itself: a file that is half written, damaged or made from
another text is never loaded, but made anew.

*Assumes* that Spark's class loader takes more files, as it does under `spark-submit` and plain
Python. *Provides* the classes of `java/` by name in the JVM. *Does not provide* them on executors.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyspark

from optimist.core.errors import ConfigError
from optimist.spark.session.jvm import Jvm

__all__ = ["dropin", "is_loaded", "java_text", "load_classes"]

_PACKAGE = "optimist.dropin"
_TEXTS = Path(__file__).parent / "java"
_CACHE_HOME = "XDG_CACHE_HOME"
_LOADER = "org.apache.spark.util.MutableURLClassLoader"
_SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_FORMAT = f"{_PACKAGE}.DeltaFormat"
_ALIAS = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_ALIAS_TEXT = f"""
package {_ALIAS.rpartition(".")[0]};
/** The format under the name of the class that it has in Delta's jar, which scripts may say. */
public final class {_ALIAS.rpartition(".")[2]} extends {_FORMAT} {{}}
"""
_JAVA_8 = 8  # or Janino refuses the default methods of interfaces
_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def dropin(jvm: Jvm) -> Any:
    """Return the package of the classes, once they are loaded."""
    return jvm.root.optimist.dropin


def load_classes(jvm: Jvm) -> None:
    """Make the classes known to Spark's class loader, once in a JVM.

    Raises:
        ConfigError: Spark's class loader takes no more classes (kind
            `OPTIMIST_DROP_IN_UNSUPPORTED`).
    """
    if is_loaded(jvm):
        return
    loader = jvm.root.java.lang.Thread.currentThread().getContextClassLoader()
    if not jvm.java_class(_LOADER).isInstance(loader):
        raise ConfigError(
            f"Spark's class loader is a {loader.getClass().getName()}, which can't take further "
            "classes, so format('delta') and SQL over Delta tables do not work in this session. "
            "Nothing was changed. Start Spark with spark-submit or from Python, or use "
            "optimist.spark.read, write and DeltaTable, which need no classes.",
            kind="OPTIMIST_DROP_IN_UNSUPPORTED",
        )
    file = _kept_file() or _keep(_compiled(jvm, loader))
    loader.addURL(jvm.root.java.io.File(str(file)).toURI().toURL())


def is_loaded(jvm: Jvm) -> bool:
    """Return whether the classes are in the JVM."""
    return jvm.has_class(_FORMAT)


@cache
def java_text() -> str:
    """Return the whole text as one unit for the compiler: one package, all imports."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(_TEXTS.glob("*.java"))]
    lines = [line for text in texts for line in text.splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    rest = (line for line in lines if not line.startswith("import "))
    return "\n".join([f"package {_PACKAGE};", *imports, *rest])


def _compiled(jvm: Jvm, loader: Any) -> bytes:
    """Return the classes as a zip file, with the name by which Spark finds the format."""
    content: dict[str, bytes] = {}
    for text in (java_text(), _ALIAS_TEXT):
        compiler = jvm.root.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setTargetVersion(_JAVA_8)
        compiler.cook(text)
        found, loader = compiler.getBytecodes(), compiler.getClassLoader()
        content |= {f"{name.replace('.', '/')}.class": bytes(found.get(name)) for name in found}
    content[_SERVICE] = f"{_FORMAT}\n".encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items()):
            archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), data)
    return file.getvalue()


def _kept_file() -> Path | None:
    """Return the classes that an earlier process has kept, or None without trusted ones."""
    folder = _cache_folder()
    if not _is_private(folder):
        return None
    for file in folder.glob(f"{_prefix()}*.jar"):
        with suppress(OSError):
            if file.name == _name(file.read_bytes()):
                return file
            file.unlink()
    return None


def _keep(content: bytes) -> Path:
    """Write the file with the classes, for later processes if that is safe."""
    folder = _cache_folder()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(folder):
        folder = Path(tempfile.mkdtemp(prefix="optimist-"))
    handle, unfinished = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return Path(unfinished).replace(folder / _name(content))


def _cache_folder() -> Path:
    home = Path(os.environ.get(_CACHE_HOME, ""))
    return (home if home.is_absolute() else _home() / ".cache") / "optimist" / "java"


def _home() -> Path:
    with suppress(RuntimeError):
        return Path.home()
    return Path(tempfile.gettempdir())  # nothing there is private, so nothing is kept


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write to a folder."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return (
        is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and os.access(folder, os.W_OK)
    )


def _prefix() -> str:
    text = java_text() + _ALIAS_TEXT
    return f"{pyspark.__version__}-{_short_hash(text.encode())}-"


def _name(content: bytes) -> str:
    return f"{_prefix()}{_short_hash(content)}.jar"


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
