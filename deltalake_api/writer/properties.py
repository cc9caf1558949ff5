"""The properties of Parquet files that deltalake's writers take."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from optimist.core.errors.argument_types import optional_whole
from optimist.core.options.packing import FilePacking
from optimist.deltalake.exceptions import not_supported

__all__ = ["BloomFilterProperties", "ColumnProperties", "Compression", "WriterProperties"]

_USUAL_LEVELS = {"GZIP": 6, "BROTLI": 1, "ZSTD": 1}
_LARGEST = 2**31 - 1
"""More than Arrow writes at a time; a limit above it is none."""
_WITHOUT_COUNTERPART = (
    "data_page_row_count_limit",
    "statistics_truncate_length",
    "default_column_properties",
    "column_properties",
)
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

    They count for the files of one call. Without a codec it is that of the table property
    `delta.parquet.compression.codec`, else ZSTD. A command refuses the limits of rows and of
    statistics, and properties of columns, by their names.

    Attributes:
        data_page_size_limit: Bytes of a page.
        dictionary_page_size_limit: Bytes of a dictionary.
        data_page_row_count_limit: Rows of a page.
        write_batch_size: Rows of a batch.
        max_row_group_size: Rows of a row group.
        compression: The codec.
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


def packing_of(properties: WriterProperties) -> FilePacking:
    """Return the packing of data files that properties mean.

    Raises:
        DeltaError: A property that is set has no counterpart (kind `OPTIMIST_NOT_BUILT_YET`).
        UsageError: A size is no whole number above 0.
    """
    for name in _WITHOUT_COUNTERPART:
        value = getattr(properties, name)
        if value is not None and not _is_usual(value):
            raise not_supported(f"The property {name} of WriterProperties", "Leave it out.")
    packing = FilePacking(
        row_group_rows=_size(properties, "max_row_group_size"),
        page_bytes=_size(properties, "data_page_size_limit"),
        dictionary_bytes=_size(properties, "dictionary_page_size_limit"),
        batch_rows=_size(properties, "write_batch_size"),
    )
    if properties.compression is None:
        return packing
    codec, _, level = properties.compression.partition("(")
    if codec == "LZ4" or (codec, level) == ("GZIP", "10)"):
        raise not_supported(
            f"The compression {properties.compression}", "Give LZ4_RAW, or a level up to 9."
        )
    number = int(level.rstrip(")")) if level else None
    return replace(packing, codec=codec.lower(), level=number)


def _size(properties: WriterProperties, name: str) -> int | None:
    found = optional_whole(getattr(properties, name), name, least=1)
    return None if found is None else min(found, _LARGEST)


def _is_usual(value: object) -> bool:
    """Return whether properties of columns ask for nothing but what is written anyway."""
    columns = value.values() if isinstance(value, dict) else (value,)
    return all(each in (ColumnProperties(), ColumnProperties(True)) for each in columns)
