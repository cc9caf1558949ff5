"""Arrow tables as frames of pandas and of Polars, which the product does not depend on."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from optimist.core.errors import ConfigError
from optimist.core.errors.kinds import MISSING_PACKAGE
from optimist.core.imports import import_by_need

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["frame_library", "to_pandas", "to_polars"]


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Return rows as a frame of pandas.

    Columns of integers that hold a null get pandas' nullable type, such as `Int64`. As floats,
    which pyarrow gives by default, large numbers would change.

    Raises:
        ConfigError: pandas is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    pandas = frame_library("pandas")
    frame: pd.DataFrame = rows.to_pandas()
    for number, item in enumerate(rows.schema):
        if pa.types.is_integer(item.type) and rows.column(number).null_count:
            nullable = getattr(pandas, f"Int{item.type.bit_width}Dtype")()
            frame[item.name] = rows.column(number).to_pandas(types_mapper=lambda _, t=nullable: t)
    return frame


def to_polars(rows: pa.Table) -> pl.DataFrame:
    """Return rows as a frame of Polars.

    Raises:
        ConfigError: Polars is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    frame: pl.DataFrame = frame_library("polars").from_arrow(rows)
    return frame


def frame_library(name: str) -> ModuleType:
    """Return a library of frames, imported on first use.

    Raises:
        ConfigError: It is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    try:
        return import_by_need(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ConfigError(
            f"The package {name} is not installed, and this method returns its frames. Nothing "
            f"was read. Run: pip install {name}",
            kind=MISSING_PACKAGE,
            package=name,
        ) from None
