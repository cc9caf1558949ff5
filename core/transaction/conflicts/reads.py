"""What a transaction has read, by which its conflicts are judged (spec 1.3)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import canonical_paths
from optimist.core.predicates import SplitPredicate

__all__ = ["ReadTracker", "Reads"]


@dataclass(frozen=True, slots=True)
class Reads:
    """Everything a transaction has read, frozen at its commit.

    Attributes:
        predicates: The predicates read by, each split into partition and data conjuncts.
        paths: The canonical paths of all files that reads returned, one string per file.
        whole_table: Whether the transaction depends on the whole table.
        app_ids: Application ids whose progress was looked up.
    """

    predicates: tuple[SplitPredicate, ...]
    paths: pa.ChunkedArray
    whole_table: bool
    app_ids: frozenset[str]

    @property
    def has_read_files(self) -> bool:
        """Whether the transaction depends on any file or predicate; a blind append does not."""
        return bool(self.predicates) or len(self.paths) > 0

    def paths_among(self, paths: pa.Array) -> pa.Array:
        """The given canonical paths that are among those read."""
        # The few given paths become the hash set; the read ones, maybe a million, are only scanned.
        hits = self.paths.filter(pc.is_in(self.paths, value_set=paths))
        return paths.filter(pc.is_in(paths, value_set=hits.combine_chunks()))


class ReadTracker:
    """Collects what one transaction reads; `freeze` gives the value that checks work on."""

    def __init__(self) -> None:
        self._predicates: list[SplitPredicate] = []
        self._paths: list[pa.Array] = []
        self._whole_table = False
        self._app_ids: set[str] = set()

    def record_files(self, split: SplitPredicate, files: pa.Table) -> None:
        """Record a read by predicate that returned these files (all that survived skipping)."""
        if split not in self._predicates:
            self._predicates.append(split)
        self._paths.extend(canonical_paths(files.column("path")).chunks)

    def record_whole_table(self) -> None:
        """Record a read of the whole table, files that are added later included."""
        self._predicates.append(SplitPredicate((), ()))
        self._whole_table = True

    def record_app_id(self, app_id: str) -> None:
        """Record a look-up of how far an application has got."""
        self._app_ids.add(app_id)

    def freeze(self) -> Reads:
        """The reads recorded so far, as a value."""
        return Reads(
            predicates=tuple(self._predicates),
            paths=pa.chunked_array(self._paths, type=pa.string()),
            whole_table=self._whole_table,
            app_ids=frozenset(self._app_ids),
        )
