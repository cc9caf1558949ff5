"""The options of HDFSLogStore: the client to use, and Hadoop's own keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import option, parse_options
from optimist.core.options.values import one_of
from optimist.core.secrets import Options, masked_repr
from optimist.logstores.shared.hadoop_options import hadoop_options

__all__ = ["CLIENTS", "HDFSOptions"]

CLIENTS = ("auto", "jvm", "native")

_HADOOP_KEYS = (
    "dfs.",
    "fs.AbstractFileSystem.",
    "fs.defaultFS",
    "fs.hdfs.",
    "fs.viewfs.",
    "hadoop.",
    "ipc.",
)


@dataclass(frozen=True, slots=True)
class HDFSOptions:
    """The options of HDFSLogStore, parsed by `from_options`.

    Attributes:
        client: One of `CLIENTS`; `auto` takes the JVM of a classic Spark session if it exists, else
            hdfs-native.
        conf_dir: The folder of `core-site.xml` and `hdfs-site.xml`, for hdfs-native; by default the
            folder of `HADOOP_CONF_DIR` or `HADOOP_HOME`. The JVM has its own class path.
        hadoop: The given keys of Hadoop, which win over the files.
    """

    client: str = option("auto", one_of(*CLIENTS))
    conf_dir: str | None = option(None)
    hadoop: Options = field(default_factory=Options)

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> HDFSOptions:
        """Parse the store's keys and pick Hadoop's, and ignore all others.

        Raises:
            ConfigError: A key of the store is unknown or has a wrong value, or keys contradict each
                other.
        """
        own = parse_options(cls, options, f"{STORE_PREFIX}hdfs.")
        return cls(**own, hadoop=hadoop_options(options, *_HADOOP_KEYS))
