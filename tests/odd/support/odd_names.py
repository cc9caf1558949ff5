"""Odd names of columns: all that a table may have without a mapping of columns."""

from __future__ import annotations

__all__ = ["NAMES", "NEED_A_MAPPING", "ON_SPARK", "PARTITION_NAMES", "quoted"]

NAMES = (
    "x.y", "A.b.c", ".", "..", ".x", "x.", "ti`ck", "`", "a`.`b", "*", "a.*", "[0]", "x[0]",
    "__row",
    "__row_list", "row", "0", "1", "element", "key", "value", "path", "stats", "null", "NULL_",
    "true", "select", "quo'te", 'dou"ble', "back\\slash", "sla/sh", "per%cent", "per%41cent", "#",
    "?",
    "&", "a:b", "$x", "@", "-", "a-b", "~", "|", "<", "sélect", "e\u0301", "日本", "😀", "\u200b",
    "\x01",
    "ß", "ﬁ", "_metadata_", "__optimist_path", "__optimist_ordinal", "__optimist_file", "x" * 200,
)  # fmt: skip
"""Beside a struct `x` with the fields `y` and `z`; `x.y` and its field are two columns."""

NEED_A_MAPPING = (" ", "a b", "a,b", "a;b", "{x}", "(x)", "a\tb", "a\nb", "a=b")
ON_SPARK = (
    "x.y", "A.b.c", ".", ".x", "x.", "ti`ck", "a`.`b", "*", "back\\slash", "sla/sh", "per%41cent",
    "日本", "__row", "quo'te",
)  # fmt: skip
"""Those of them that Spark, or PySpark, could take for something else."""
PARTITION_NAMES = (".x", "x.y", "ti`ck", "per%41cent", "sla/sh", "*", "日本", "__row")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
