"""The sidecars that the next V2 checkpoint of a large table names again, and those it writes anew.

A checkpoint then costs what changed since the last (spec 5.8). Each sidecar of this engine has
either adds or removes, and tags that say what is in it. A sidecar is named again if no commit since
names one of its files, if none of its tombstones has expired, and if it is not small.

New adds and those of changed and small sidecars go into new sidecars, sorted among themselves. Once
more than half of all adds are in such sidecars, all adds are sorted again.

A cleanup deletes a sidecar that no checkpoint in the log names. So sidecars are named again only
while no cleanup may delete the checkpoint that has named them so far: a cleanup that runs at the
same time keeps them for its sake, and a later one for the sake of the new checkpoint.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import LogFileNotFoundError, TableError
from optimist.core.errors.kinds import MISSING_PART_FILES
from optimist.core.log.file_table import TOMBSTONES_SCHEMA, file_keys
from optimist.core.log.limits import LogLimits
from optimist.core.log.segment import LogSegment
from optimist.core.log.sidecars import Sidecar, sidecar_directory
from optimist.core.log.typed_rows import TypedFile
from optimist.core.log_upkeep.base_checkpoint import (
    Changes,
    base_rows,
    changes_since_checkpoint,
)
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY, Layout
from optimist.core.log_upkeep.external_sort import regrouped
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["KnownSidecar", "SidecarPlan", "SidecarTags", "known_sidecars", "plan_sidecars"]

_DAY_MS = 24 * 60 * 60 * 1000
_KIND, _ROWS, _BYTES = "optimist.kind", "optimist.rows", "optimist.bytes"
_LEAST_KEY, _MOST_KEY = "optimist.minKey", "optimist.maxKey"
_SORT, _OLDEST = "optimist.sort", "optimist.oldest"


@dataclass(frozen=True, slots=True)
class SidecarTags:
    """What the tags of a sidecar say about it.

    Attributes:
        kind: `add` or `remove`: the only kind of action in it.
        rows: The number of actions.
        size_bytes: The sum of the sizes of its adds, 0 for removes.
        least_key: The least key of its files (see `file_keys`).
        most_key: The greatest.
        sort: The id of the sort that made it, which ordered all adds of the table; else empty.
        oldest_ms: The least time of removal, 0 for adds.
    """

    kind: str
    rows: int
    size_bytes: int
    least_key: str
    most_key: str
    sort: str = ""
    oldest_ms: int = 0

    @classmethod
    def of_rows(cls, kind: str, rows: pa.RecordBatch, sort: str) -> SidecarTags:
        """Describe the only rows of a new sidecar."""
        ends = pc.min_max(file_keys(rows)).as_py()
        is_add = kind == "add"
        size_bytes = exact_sum(rows.column("size")) if is_add else 0
        oldest = 0 if is_add else pc.min(pc.fill_null(rows.column("deletionTimestamp"), 0)).as_py()
        return cls(kind, rows.num_rows, size_bytes, ends["min"], ends["max"], sort, oldest)

    def to_dict(self, layout: Layout) -> dict[str, str]:
        """Return the tags as texts."""
        return {
            LAYOUT_KEY: layout.digest,
            _KIND: self.kind,
            _ROWS: str(self.rows),
            _BYTES: str(self.size_bytes),
            _LEAST_KEY: self.least_key,
            _MOST_KEY: self.most_key,
            _SORT: self.sort,
            _OLDEST: str(self.oldest_ms),
        }

    @classmethod
    def parse(cls, tags: Mapping[str, str], layout: Layout) -> SidecarTags | None:
        """Return what the tags say, or None if they are not those of this layout."""
        kind = tags.get(_KIND)
        if tags.get(LAYOUT_KEY) != layout.digest or kind not in ("add", "remove"):
            return None
        try:
            rows, size_bytes, oldest = (int(tags[key]) for key in (_ROWS, _BYTES, _OLDEST))
            return cls(
                kind, rows, size_bytes, tags[_LEAST_KEY], tags[_MOST_KEY], tags[_SORT], oldest
            )
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class KnownSidecar:
    """A sidecar of the checkpoint before, with what its tags say and its file."""

    sidecar: Sidecar
    tags: SidecarTags
    file: TypedFile


@dataclass(frozen=True, slots=True)
class SidecarPlan:
    """What a checkpoint takes over from the one before.

    Attributes:
        kept: The sidecars that it names again, with what their tags say.
        is_sorted: Whether all adds are written anew, and so sorted among all.
        changes: What the commits since have changed.
        layout: The layout of the rows.
        rewritten: The sidecars whose rows are written anew.
        limits: The most that is read of the log.
        expired_ms: Tombstones up to this time have expired.
    """

    kept: tuple[tuple[Sidecar, SidecarTags], ...]
    is_sorted: bool
    changes: Changes
    layout: Layout
    rewritten: tuple[KnownSidecar, ...]
    limits: LogLimits
    expired_ms: int

    def adds(self) -> Iterator[pa.RecordBatch]:
        """Yield the adds to write, in no order."""
        files = [item.file for item in self.rewritten if item.tags.kind == "add"]
        yield from base_rows(files, self.changes, self.layout, self.limits)
        if self.changes.added.num_rows:
            yield self.layout.rows(self.changes.added)

    def tombstones(self, group_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the unexpired tombstones to write, as row groups."""
        return regrouped(self._unexpired(), group_rows)

    def _unexpired(self) -> Iterator[pa.RecordBatch]:
        since = pc.greater(
            pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0)), pc.scalar(self.expired_ms)
        )
        for item in self.rewritten:
            if item.tags.kind == "remove":
                for rows in item.file.rows("remove", TOMBSTONES_SCHEMA):
                    yield self.changes.without_touched(rows).filter(since)
        yield self.changes.removed.filter(since)


def plan_sidecars(
    store: LogStore,
    snapshot: Snapshot,
    layout: Layout,
    *,
    most_rows: int,
    limits: LogLimits,
    now_ms: int,
) -> SidecarPlan | None:
    """Return what a version's checkpoint takes over, or None if nothing can be.

    Args:
        store: The store of the log.
        snapshot: The version.
        layout: The layout of the rows to write.
        most_rows: The most rows of a sidecar.
        limits: The most that is read of the log.
        now_ms: The time, in epoch milliseconds.

    Raises:
        TableError, LogFileNotFoundError: The checkpoint, a sidecar or a commit is damaged or gone.
    """
    segment = snapshot.segment
    if segment is None or segment.checkpoint is None:
        return None
    known = known_sidecars(store, segment, layout, limits)
    if not known:
        return None
    changes = changes_since_checkpoint(store, segment, limits)
    if changes is None:
        return None
    expired_ms = now_ms - snapshot.properties.deleted_file_retention_ms
    kept: list[KnownSidecar] = []
    is_safe = segment.checkpoint.files[0].modified_ms > _unsafe_since_ms(snapshot, now_ms)
    if is_safe:
        _ensure_listed(store, snapshot, known)
        untouched = _untouched(known, changes, expired_ms)
        kept += _choose_kept(known, untouched, "add", changes.added.num_rows, most_rows)
        kept += _choose_kept(known, untouched, "remove", changes.removed.num_rows, most_rows)
        kept = _sorted_enough(kept, known, changes.added.num_rows)
    names = {item.sidecar.name for item in kept}
    return SidecarPlan(
        kept=tuple((item.sidecar, item.tags) for item in kept),
        is_sorted=not any(item.tags.kind == "add" for item in kept),
        changes=changes,
        layout=layout,
        rewritten=tuple(item for item in known if item.sidecar.name not in names),
        limits=limits,
        expired_ms=expired_ms,
    )


def known_sidecars(
    store: LogStore, segment: LogSegment, layout: Layout, limits: LogLimits
) -> list[KnownSidecar]:
    """Return the sidecars of a segment's checkpoint, or none unless all are of this layout.

    Those of the last sort come first, in its order.

    Raises:
        TableError, LogFileNotFoundError: The checkpoint's top level is damaged or gone.
    """
    if segment.checkpoint is None:
        return []
    manifest = segment.checkpoint.open(store, limits).manifest()
    if manifest is None:
        return []
    directory = sidecar_directory(segment.log_path)
    known = []
    for sidecar in manifest.sidecars:
        tags = SidecarTags.parse(sidecar.tags, layout)
        if tags is None:
            return []
        file = TypedFile(store, join(directory, sidecar.file_name), limits)
        known.append(KnownSidecar(sidecar, tags, file))
    return known if _agrees(known, manifest.tags) else []


def _agrees(known: Sequence[KnownSidecar], tags: Mapping[str, str]) -> bool:
    """Return whether the sums of the checkpoint are those of its sidecars."""
    adds = sum(item.tags.rows for item in known if item.tags.kind == "add")
    return tags.get("numOfAddFiles") == str(adds)


def _unsafe_since_ms(snapshot: Snapshot, now_ms: int) -> int:
    """Return until when a checkpoint was written that a cleanup might delete within a day."""
    return now_ms - snapshot.properties.log_retention_ms + _DAY_MS


def _ensure_listed(store: LogStore, snapshot: Snapshot, known: Sequence[KnownSidecar]) -> None:
    directory = sidecar_directory(snapshot.log_path)
    try:
        sizes = {item.name: item.size_bytes for item in store.list_from(join(directory, ""))}
    except LogFileNotFoundError:
        sizes = {}
    for item in known:
        if sizes.get(item.sidecar.file_name) != item.sidecar.size_bytes:
            raise TableError(
                f"The sidecar {item.sidecar.file_name} is missing, or has another size than its "
                "checkpoint says. It is not named again.",
                kind=MISSING_PART_FILES,
                path=item.file.path,
            )


def _untouched(known: Sequence[KnownSidecar], changes: Changes, expired_ms: int) -> set[str]:
    """Return the names of the sidecars of which all rows still hold."""
    touched = changes.touched.sort()
    texts = touched.to_pylist()
    found = set()
    for item in known:
        tags = item.tags
        begin, end = bisect_left(texts, tags.least_key), bisect_right(texts, tags.most_key)
        has_expired = tags.kind == "remove" and tags.oldest_ms <= expired_ms
        if not has_expired and not _names_one_of(item, touched.slice(begin, max(end - begin, 0))):
            found.add(item.sidecar.name)
    return found


def _names_one_of(item: KnownSidecar, keys: pa.Array) -> bool:
    return len(keys) > 0 and any(
        pc.any(pc.is_in(batch, value_set=keys), min_count=0).as_py()
        for batch in item.file.keys(item.tags.kind)
    )


def _choose_kept(
    known: Sequence[KnownSidecar], untouched: set[str], kind: str, num_new: int, most_rows: int
) -> list[KnownSidecar]:
    """Return the untouched sidecars of a kind, without small ones that are to be joined.

    Those that are too large by now, because the option was changed, are left out, too.
    """
    mine = [item for item in known if item.tags.kind == kind]
    fitting = [item for item in mine if item.tags.rows <= most_rows]
    holding = [item for item in fitting if item.sidecar.name in untouched]
    small = [item for item in holding if 2 * item.tags.rows < most_rows]
    if num_new or len(holding) < len(mine) or len(small) > 1:
        return [item for item in holding if item not in small]
    return holding


def _sorted_enough(
    kept: Sequence[KnownSidecar], known: Sequence[KnownSidecar], num_new: int
) -> list[KnownSidecar]:
    """Return the sidecars to keep: no adds if most adds would be outside the last sort."""
    rows_of_sort: Counter[str] = Counter()
    for item in kept:
        if item.tags.kind == "add" and item.tags.sort:
            rows_of_sort[item.tags.sort] += item.tags.rows
    total = num_new + sum(item.tags.rows for item in known if item.tags.kind == "add")
    if 2 * max(rows_of_sort.values(), default=0) >= total:
        return list(kept)
    return [item for item in kept if item.tags.kind != "add"]
