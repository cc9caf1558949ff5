"""Frames that are made, cached, followed and given back in random order, beside two writers.

What each frame may show is told by a model. A frame is a tree; a part of it that is cached shows
the rows that it was cached with, any other part those of its table's newest version. A commit of
this session makes anew what reads its table; one of another writer, which is `deltalake`, does not.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random  # noqa: TID251 - a case is its seed
from typing import Any, TypeAlias

import deltalake
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.spark import DeltaTable

Tree: TypeAlias = tuple[Any, ...]
_MOST_FRAMES = 6


@dataclass
class CachedFrames:
    """One random history; `step` does something, and compares all frames with the model.

    Attributes:
        spark: A session that is enabled.
        folder: Where the tables are.
        seed: Of the history.
    """

    spark: SparkSession
    folder: Path
    seed: int
    frames: list[tuple[Tree, DataFrame]] = field(default_factory=list)
    cached: dict[Tree, frozenset[int]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._numbers = count()
        self._rows: dict[str, frozenset[int]] = {}
        self._generations = {"a": 0, "b": 0}
        for name in self._generations:
            self._make(name)
            self._load(name)

    def step(self) -> None:
        """Do one thing, and look at everything."""
        often = (self._derive, self._cache, self._commit, self._others)
        self._random.choice([*often, *often, self._uncache, self._fix, self._remake])()
        for tree, frame in self.frames:
            shown = {row.id for row in frame.selectExpr("id").collect()}
            assert shown == self._expected(tree), (self.seed, self.done, tree)

    def give_back(self) -> None:
        """Un-cache every frame; then nothing is cached any more."""
        for _, frame in self.frames:
            frame.unpersist(blocking=True)
        self.cached.clear()

    # The model.

    def _expected(self, tree: Tree) -> frozenset[int]:
        if tree in self.cached:
            return self.cached[tree]
        kind, *parts = tree
        if kind == "fixed":
            return frozenset(parts[-1])
        if kind == "table":
            return self._rows[parts[0]]
        if kind == "even":
            return frozenset(one for one in self._expected(parts[0]) if one % 2 == 0)
        return self._expected(parts[0]) - self._expected(parts[1])

    def _reads(self, tree: Tree, name: str) -> bool:
        if tree[0] == "table":
            return bool(tree[1] == name)
        return tree[0] != "fixed" and any(self._reads(part, name) for part in tree[1:])

    def _reading(self, name: str) -> list[Tree]:
        """What is cached of a table, the parts before the wholes."""
        return sorted((tree for tree in self.cached if self._reads(tree, name)), key=_depth)

    # What is done.

    def _load(self, name: str) -> None:
        frame = self.spark.read.format("delta").load(self._path(name))
        self._keep(("table", name, self._generations[name]), frame)

    def _keep(self, tree: Tree, frame: DataFrame) -> None:
        self.frames.append((tree, frame))
        if len(self.frames) > _MOST_FRAMES:
            gone, forgotten = self.frames.pop(self._random.randrange(_MOST_FRAMES))
            if all(tree != gone for tree, _ in self.frames):
                forgotten.unpersist(blocking=True)
                self.cached.pop(gone, None)

    def _derive(self) -> None:
        self.done.append("derive")
        how = self._random.choice(["table", "even", "without"])
        tree, frame = self._random.choice(self.frames)
        if how == "table":
            self._load(self._random.choice("ab"))
        elif how == "even":
            self._keep(("even", tree), frame.where("id % 2 = 0"))
        else:
            other_tree, other = self._random.choice(self.frames)
            self._keep(("without", tree, other_tree), frame.join(other, "id", "left_anti"))

    def _fix(self) -> None:
        self.done.append("fix")
        name = self._random.choice("ab")
        version = deltalake.DeltaTable(self._path(name)).version()
        frame = self.spark.read.format("delta").option("versionAsOf", version)
        tree = ("fixed", name, version, self._generations[name], tuple(self._rows[name]))
        self._keep(tree, frame.load(self._path(name)))

    def _cache(self) -> None:
        tree, frame = self._random.choice(self.frames)
        self.done.append(f"cache {tree}")
        self.cached.setdefault(tree, self._expected(tree))
        frame.cache().selectExpr("id").collect()

    def _uncache(self) -> None:
        tree, frame = self._random.choice(self.frames)
        self.done.append(f"uncache {tree}")
        self.cached.pop(tree, None)
        frame.unpersist(blocking=True)

    def _commit(self) -> None:
        name, added = self._random.choice("ab"), next(self._numbers)
        path, victim = self._path(name), min(self._rows[name], default=None)
        self.done.append(f"commit to {name}")
        if self._random.random() < 0.5 and victim is not None:
            DeltaTable.forPath(self.spark, path).delete(f"id = {victim}")
            self._rows[name] -= {victim}
        else:
            row = self.spark.range(added, added + 1)
            row.write.format("delta").mode("append").save(path)
            self._rows[name] |= {added}
        known = {tree: self.cached.pop(tree) for tree in self._reading(name)}
        for tree in known:
            self.cached[tree] = self._expected(tree)

    def _others(self) -> None:
        name = self._random.choice("ab")
        self.done.append(f"others to {name}")
        added, victim = next(self._numbers), min(self._rows[name], default=None)
        if self._random.random() < 0.5 and victim is not None:
            deltalake.DeltaTable(self._path(name)).delete(f"id = {victim}")
            self._rows[name] -= {victim}
        else:
            deltalake.write_deltalake(self._path(name), _table({added}), mode="append")
            self._rows[name] |= {added}

    def _remake(self) -> None:
        """Another table in the place; whoever looks at it gives back what is cached."""
        name = self._random.choice("ab")
        self.done.append(f"remake {name}")
        shutil.rmtree(self._path(name))
        self._generations[name] += 1
        self._make(name)
        # Files of versions that are gone can't be read any more.
        self.frames = [each for each in self.frames if not _is_of(each[0], "fixed", name)]
        self._load(name)
        for tree in [tree for tree in self.cached if self._reads(tree, name)]:
            del self.cached[tree]

    def _make(self, name: str) -> None:
        rows = frozenset(next(self._numbers) for _ in range(4))
        deltalake.write_deltalake(self._path(name), _table(rows))
        self._rows[name] = rows

    def _path(self, name: str) -> str:
        return str(self.folder / name)


def _table(rows: frozenset[int] | set[int]) -> pa.Table:
    return pa.table({"id": pa.array(sorted(rows), pa.int64())})


def _depth(tree: Tree) -> int:
    if tree[0] in ("table", "fixed"):
        return 0
    return 1 + max(_depth(part) for part in tree[1:])


def _is_of(tree: Tree, kind: str, name: str) -> bool:
    if tree[0] in ("table", "fixed"):
        return bool(tree[:2] == (kind, name))
    return any(_is_of(part, kind, name) for part in tree[1:])
