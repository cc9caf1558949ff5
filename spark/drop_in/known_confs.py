"""The keys of Delta's session conf, known to Spark as Delta's jar makes them known.

`delta_confs.tsv` tells of each key what `java/Confs.java` registers. Spark keeps what is registered
as long as its JVM lives. What the engine reads of the conf are entries that somebody has set:
a default that Spark answers with is only an answer.
"""

from __future__ import annotations

from pathlib import Path

from optimist.spark.drop_in.compiler import dropin
from optimist.spark.session.jvm import Jvm

__all__ = ["register_confs"]

_TABLE = Path(__file__).parent / "delta_confs.tsv"


def register_confs(jvm: Jvm) -> None:
    """Let `spark.conf` answer with Delta's defaults, and refuse values that Delta refuses."""
    dropin(jvm).Confs.register(_TABLE.read_text(encoding="utf-8"))
