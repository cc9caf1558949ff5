"""Getting the jars of a pom and of all it names, with Maven."""

from __future__ import annotations

import shutil

import places
from installing import Installation, find_java, find_tool

__all__ = ["copy_jars"]

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def copy_jars(installation: Installation, pom: str) -> None:
    """Put the jars of a pom among the recipes into the installation's folder `lib`.

    Raises:
        SetupError: There is no Java or no Maven here, or Maven failed.
    """
    find_java(places.ROOT)
    maven = find_tool("mvn", "install Maven (Debian: apt-get install maven)")
    shutil.copy(places.RECIPES / pom, installation.home / "pom.xml")
    lib = installation.home / "lib"
    installation.run(
        [maven, "-B", "-q", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={lib}"]
    )
