"""Rule, parser and catalogs in a session's state, and out of it: the Python face of `Sessions`.

`java/Sessions.java` does the work, in one call from here, since Spark's state has to be changed by
reflection, which is a hundred round trips from Python.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import shown
from optimist.spark.drop_in.compiler import dropin
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.redaction import SECRET_NAMES

__all__ = ["ensure_no_delta_jar", "install", "remove"]

_JAR_CLASSES = (
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "io.delta.sql.DeltaSparkSessionExtension",
)


def ensure_no_delta_jar(jvm: Jvm) -> None:
    """Refuse a session whose Spark has Delta's own jar: two engines can't share the name `delta`.

    Raises:
        ConfigError: The jar is on the class path (kind `OPTIMIST_DELTA_JAR_PRESENT`).
    """
    for name in _JAR_CLASSES:
        if not jvm.has_class(name):
            continue
        raise ConfigError(
            f"Spark has Delta's jar on its class path (the class {name}). Nothing was changed: "
            "the session serves Delta tables by that jar. Start Spark without it (spark.jars, "
            "spark.jars.packages), or leave enable(spark) out.",
            kind="OPTIMIST_DELTA_JAR_PRESENT",
            class_name=name,
        )


def install(jvm: Jvm) -> None:
    """Serve Delta tables in a session, its clones and the new sessions made from it.

    Raises:
        ConfigError: This Spark's session has not the parts that are looked for, or the catalog that
            it names can't be used (kind `OPTIMIST_DROP_IN_UNSUPPORTED`); nothing was changed.
    """
    with jvm.as_active():  # whose conf names the session's catalog
        _changed(lambda: dropin(jvm).Sessions.enable(jvm.session, SECRET_NAMES))


def remove(jvm: Jvm) -> None:
    """Take everything out of a session again."""
    _changed(lambda: dropin(jvm).Sessions.disable(jvm.session))


def _changed(change: Any) -> None:
    try:
        change()
    except Py4JJavaError as error:
        cause, message = (
            error.java_exception.getClass().getName(),
            error.java_exception.getMessage(),
        )
        if cause == "java.lang.ClassNotFoundException":
            raise ConfigError(
                "The class that spark.sql.catalog.spark_catalog names can't serve this session's "
                f"tables ({shown(str(message))}), and Spark can't resolve a name without it. "
                "Nothing was changed. Put its jar on the class path, or leave that key out.",
                kind="OPTIMIST_DROP_IN_UNSUPPORTED",
                catalog=str(message).partition(":")[0],
            ) from None
        if cause != "java.lang.NoSuchFieldException":
            raise
        raise ConfigError(
            "This Spark keeps its session's state in another way than PySpark 4.0 to 4.3, so "
            "format('delta') and SQL over Delta tables don't work in it: "
            f"{message!s} is missing. Nothing was changed. Use one of "
            "these versions, or optimist.spark.read, write and DeltaTable.",
            kind="OPTIMIST_DROP_IN_UNSUPPORTED",
            version=str(message),
        ) from None
