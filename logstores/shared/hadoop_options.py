"""Options that Spark's users have for Hadoop's connectors, with every prefix that Spark allows."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.errors import ConfigError

__all__ = ["hadoop_options"]


def hadoop_options(options: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """The options whose Hadoop key starts with one of the prefixes, under that key.

    `fs.gs.project.id`, `hadoop.fs.gs.project.id` and `spark.hadoop.fs.gs.project.id` are one.

    Raises:
        ConfigError: Two spellings of a key differ.
    """
    found: dict[str, str] = {}
    for key, value in options.items():
        bare = key.removeprefix("spark.").removeprefix("hadoop.")
        if not bare.startswith(prefixes):
            continue
        if found.setdefault(bare, value) != value:
            raise ConfigError(
                f"{bare} is given with and without a prefix (spark.hadoop.), and the values "
                "differ. Keep one.",
                kind="OPTIMIST_CONTRADICTING_OPTIONS",
                keys=(bare, f"spark.hadoop.{bare}"),
            )
    return found
