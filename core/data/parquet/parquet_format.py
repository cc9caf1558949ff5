"""How a table wants its Parquet files packed: codec and kind of data pages (spec 7.1).

Readers need neither property: a file says itself how it is packed.
"""

from __future__ import annotations

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.protocol.properties import TableProperties

__all__ = ["DEFAULT_CODEC", "arrow_codec", "data_page_version", "ensure_codec", "wanted_codec"]

DEFAULT_CODEC = "zstd"
_CODECS = {
    "brotli": "brotli",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "none": "none",
    "snappy": "snappy",
    "uncompressed": "none",
    "zstd": "zstd",
}
"""Spark's names of Parquet's codecs, to pyarrow's."""


def wanted_codec(properties: TableProperties, default: str = DEFAULT_CODEC) -> str:
    """The codec of new files by Spark's name, in lower case; it may be one that nobody knows."""
    return (properties.parquet_compression_codec or default).strip().lower()


def ensure_codec(name: str) -> str:
    """The codec's name in lower case.

    Raises:
        UsageError: Arrow does not write it (kind `DELTA_ILLEGAL_OPTION`).
    """
    folded = name.strip().lower()
    if folded not in _CODECS:
        raise UsageError(
            f"The compression codec {quoted(name)} is unknown. Nothing was written. Give the "
            "option compression, or the table property delta.parquet.compression.codec, as one of "
            f"{', '.join(sorted(_CODECS))}.",
            kind="DELTA_ILLEGAL_OPTION",
            key="compression",
        )
    return folded


def arrow_codec(name: str) -> str:
    """Pyarrow's name of a codec; that of the default for one that Arrow does not write."""
    return _CODECS.get(name, _CODECS[DEFAULT_CODEC])


def data_page_version(properties: TableProperties) -> str:
    """`1.0` or `2.0`, as Arrow names the kinds of data pages."""
    return "2.0" if properties.parquet_format_version.startswith("2") else "1.0"
