"""The properties of Parquet files that deltalake's writers take."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields

from optimist.deltalake.exceptions import not_supported

__all__ = ["BloomFilterProperties", "ColumnProperties", "Compression", "WriterProperties"]

_USUAL_LEVELS = {"GZIP": 6, "BROTLI": 1, "ZSTD": 1}
_LEVELS = {"GZIP": (0, 10), "BROTLI": (0, 11), "ZSTD": (1, 22)}


class Compression(enum.Enum):
    """The codecs of Parquet."""

    UNCOMPRESSED = "UNCOMPRESSED"
    SNAPPY = "SNAPPY"
    GZIP = "GZIP"
    BROTLI = "BROTLI"
    LZ4 = "LZ4"
    ZSTD = "ZSTD"
    LZ4_RAW = "LZ4_RAW"

    @classmethod
    def from_str(cls, value: str) -> Compression:
        """Return the codec of a name in any case.

        Raises:
            ValueError: There is no such codec.
        """
        try:
            return cls(value.upper())
        except (AttributeError, ValueError):
            known = ", ".join(item.value for item in cls)
            raise ValueError(f"{value!r} is no codec of Parquet. Use one of {known}.") from None


@dataclass
class BloomFilterProperties:
    """Bloom filters in data files, which are not written here.

    Attributes:
        set_bloom_filter_enabled: Whether to write them.
        fpp: The share of false hits, between 0 and 1.
        ndv: The number of distinct values.
    """

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise ValueError(f"fpp is {self.fpp}. Give a number between 0 and 1.")


@dataclass
class ColumnProperties:
    """How one column is written; no part of it has a counterpart here.

    Attributes:
        dictionary_enabled: Whether values go through a dictionary.
        statistics_enabled: The level of Parquet's statistics.
        bloom_filter_properties: Bloom filters.
        encoding: The encoding of values without a dictionary.
    """

    dictionary_enabled: bool | None = None
    statistics_enabled: str | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and self.dictionary_enabled:
            raise ValueError("A column has an encoding or a dictionary, not both.")


@dataclass
class WriterProperties:
    """How data files are written.

    The codec counts, for the files of this call; without one it is that of the table property
    `delta.parquet.compression.codec`, else ZSTD. A command refuses all other properties that are
    set, by their names.

    Attributes:
        data_page_size_limit: Bytes of a page.
        dictionary_page_size_limit: Bytes of a dictionary.
        data_page_row_count_limit: Rows of a page.
        write_batch_size: Rows of a batch.
        max_row_group_size: Rows of a row group.
        compression: The codec.
        compression_level: The codec's level; only the usual one is written.
        statistics_truncate_length: Bytes of a bound in Parquet's statistics.
        default_column_properties: For columns without their own.
        column_properties: By column.
    """

    data_page_size_limit: int | None = None
    dictionary_page_size_limit: int | None = None
    data_page_row_count_limit: int | None = None
    write_batch_size: int | None = None
    max_row_group_size: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    statistics_truncate_length: int | None = None
    default_column_properties: ColumnProperties | None = None
    column_properties: dict[str, ColumnProperties] | None = None

    def __post_init__(self) -> None:
        if self.compression is None:
            if self.compression_level is not None:
                raise ValueError("A compression_level needs a compression.")
            return
        codec = Compression.from_str(self.compression).value
        if codec not in _LEVELS:
            self.compression = codec
            return
        lowest, highest = _LEVELS[codec]
        level = _USUAL_LEVELS[codec] if self.compression_level is None else self.compression_level
        if not lowest <= level <= highest:
            raise ValueError(f"The level of {codec} is from {lowest} to {highest}, not {level}.")
        self.compression = f"{codec}({level})"


def codec_of(properties: WriterProperties) -> str | None:
    """Return the codec of data files by Spark's name, or None for the table's.

    Raises:
        DeltaError: Another property is set (kind `OPTIMIST_NOT_BUILT_YET`).
    """
    for item in fields(WriterProperties):
        value = getattr(properties, item.name)
        is_codec = item.name in ("compression", "compression_level")
        if value is not None and not is_codec and not _is_usual(value):
            raise not_supported(f"The property {item.name} of WriterProperties", "Leave it out.")
    if properties.compression is None:
        return None
    codec, _, level = properties.compression.partition("(")
    if codec == "LZ4" or (level and int(level.rstrip(")")) != _USUAL_LEVELS[codec]):
        raise not_supported(
            f"The compression {properties.compression}",
            "Give a codec other than LZ4, without a level.",
        )
    return codec.lower()


def _is_usual(value: object) -> bool:
    """Return whether properties of columns ask for nothing but what is written anyway."""
    columns = value.values() if isinstance(value, dict) else (value,)
    return all(each in (ColumnProperties(), ColumnProperties(True)) for each in columns)
