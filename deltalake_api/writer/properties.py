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

    The codec is that of the table property `delta.parquet.compression.codec`, else ZSTD. A command
    refuses another codec, and all other properties that are set, by their names.

    Attributes:
        data_page_size_limit: Bytes of a page.
        dictionary_page_size_limit: Bytes of a dictionary.
        data_page_row_count_limit: Rows of a page.
        write_batch_size: Rows of a batch.
        max_row_group_size: Rows of a row group.
        compression: The codec, if it is the one that is written anyway.
        compression_level: The codec's level.
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


def ensure_as_written(properties: WriterProperties | None, codec: str) -> None:
    """Refuse properties of files that ours do not have.

    Args:
        properties: The properties.
        codec: The codec of the files, as Spark calls it.

    Raises:
        DeltaError: One of them is set (kind `OPTIMIST_NOT_BUILT_YET`).
    """
    if properties is None:
        return
    for item in fields(WriterProperties):
        value = getattr(properties, item.name)
        if value in (None, ColumnProperties(), {}) or _is_codec(item.name, value, codec):
            continue
        is_codec = item.name.startswith("compression")
        remedy = "Set delta.parquet.compression.codec." if is_codec else "Leave it out."
        raise not_supported(f"The property {item.name} of WriterProperties", remedy)


def _is_codec(name: str, value: object, codec: str) -> bool:
    usual = f"({_USUAL_LEVELS[codec.upper()]})" if codec.upper() in _USUAL_LEVELS else ""
    return name == "compression" and value == codec.upper() + usual
