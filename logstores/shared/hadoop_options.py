"""The options of Hadoop's connectors, under every prefix that Spark allows."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.options.fields import keys_by_name
from optimist.core.secrets import Options

__all__ = ["hadoop_options"]


def hadoop_options(options: Mapping[str, str], *prefixes: str) -> Options:
    """Return the options whose Hadoop key starts with one of the prefixes, under that key.

    `fs.gs.project.id`, `hadoop.fs.gs.project.id` and `spark.hadoop.fs.gs.project.id` are one key.

    Raises:
        ConfigError: Two spellings of a key differ.
    """

    def name_of(key: str) -> str | None:
        bare = key.removeprefix("spark.").removeprefix("hadoop.")
        return bare if bare.startswith(prefixes) else None

    return Options({bare: options[key] for bare, key in keys_by_name(options, name_of).items()})
