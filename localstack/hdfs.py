"""A mini cluster of real HDFS: one name node and one data node in one JVM, from Maven."""

from __future__ import annotations

import places
from asking import talk
from emulator import Emulator, Launch, ServerCommand
from installing import Installation, find_java
from maven import copy_jars

__all__ = ["HDFS"]


def _install(installation: Installation) -> None:
    copy_jars(installation, "hdfs-pom.xml")
    lib = installation.home / "lib"
    (compiler,) = lib.glob("ecj-*.jar")
    hadoop = ":".join(str(jar) for jar in lib.glob("hadoop-*.jar"))
    classes = str(installation.home / "classes")
    source = str(places.RECIPES / "MiniHdfs.java")
    installation.run(
        [
            *(find_java(places.ROOT), "-jar", str(compiler), "-11", "-nowarn"),
            *("-cp", hadoop, "-d", classes, source),
        ]
    )


def _command(launch: Launch) -> ServerCommand:
    classpath = f"{places.RECIPES}:{launch.home}/classes:{launch.home}/lib/*"
    return ServerCommand(
        (
            find_java(places.ROOT),
            *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-cp", classpath, "MiniHdfs", str(launch.port)),
            *(str(launch.scratch / "dfs"), str(launch.scratch / "ready")),
        )
    )


def _is_ready(launch: Launch) -> bool:
    # The name node listens before the data node has joined; the file is made after that.
    return (launch.scratch / "ready").exists() and talk(launch.port) is not None


HDFS = Emulator(
    name="hdfs",
    title="HDFS mini cluster",
    version="3.5.0",
    endpoint="hdfs://127.0.0.1:{port}",
    install_limit_s=600,
    start_limit_s=120,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
