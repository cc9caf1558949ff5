"""The options of HDFSLogStore: which client, and the keys of Hadoop that it goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimist.core.errors import ConfigError
from optimist.core.options import STORE_PREFIX
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.store_options import own_options

__all__ = ["CLIENTS", "HDFSOptions"]

CLIENTS = ("auto", "jvm", "native")

_PREFIX = f"{STORE_PREFIX}hdfs."
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
    """What HDFSLogStore goes by. Build it with `from_options`.

    Attributes:
        client: One of `CLIENTS`; `auto` takes the JVM of a classic Spark session where there is
            one, else hdfs-native.
        conf_dir: Where `core-site.xml` and `hdfs-site.xml` are, for hdfs-native; without it
            `HADOOP_CONF_DIR` and `HADOOP_HOME` say. The JVM has its own class path.
        hadoop: Hadoop's keys that were given; they win over the files.
    """

    client: str = "auto"
    conf_dir: str | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> HDFSOptions:
        """Parse the store's keys and pick Hadoop's; all others are none of its business.

        Raises:
            ConfigError: An own key is unknown or has no such value, or keys contradict each other.
        """
        own = own_options(options, "hdfs")
        client = own.pop("client", "auto").strip().lower()
        if client not in CLIENTS:
            raise ConfigError(
                f"The value of {_PREFIX}client does not serve: it must be one of "
                f"{', '.join(CLIENTS)}.",
                kind="OPTIMIST_INVALID_OPTION",
                key=f"{_PREFIX}client",
            )
        conf_dir = own.pop("confDir", None)
        for option in own:
            raise ConfigError(
                f"Unknown option {_PREFIX}{option}. Known: client, confDir.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=f"{_PREFIX}{option}",
            )
        return cls(client, conf_dir, hadoop_options(options, *_HADOOP_KEYS))
