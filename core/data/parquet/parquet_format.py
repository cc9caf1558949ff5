"""The packing of a table's Parquet files: codec and kind of data pages (spec 7.1).

Readers need neither property: a file itself records its packing.
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
"""Spark's names of Parquet's codecs, mapped to pyarrow's."""


def wanted_codec(properties: TableProperties, default: str = DEFAULT_CODEC) -> str:
    """Return the codec of new files by Spark's name, in lower case. It may be unknown."""
    return (properties.parquet_compression_codec or default).strip().lower()


def ensure_codec(name: str) -> str:
    """Return the codec's name in lower case, or refuse an unknown codec.

    Raises:
        UsageError: Arrow does not write the codec (kind `DELTA_ILLEGAL_OPTION`).
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
    """Return pyarrow's name of a codec, or the default's for one that Arrow does not write."""
    return _CODECS.get(name, _CODECS[DEFAULT_CODEC])


def data_page_version(properties: TableProperties) -> str:
    """Return `1.0` or `2.0`, as Arrow names the kinds of data pages."""
    return "2.0" if properties.parquet_format_version.startswith("2") else "1.0"
