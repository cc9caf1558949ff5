"""A table that tracks its rows, beside a model that knows the id and version of each row."""

from __future__ import annotations

from optimist.spark import DeltaTable, write

__all__ = ["Tracked"]

ID, VERSION = "_metadata.row_id", "_metadata.row_commit_version"


class Tracked:
    """A table of rows (k, p, v), and what is known of each row: its values, id and version."""

    def __init__(self, spark, path, log, **options):
        self.spark, self.path, self.log, self.options = spark, path, log, options
        self.rows, self.ids, self.given = {}, {}, set()

    def frame(self, rows):
        values = ", ".join(f"({k}, {p}, '{v}')" for k, (p, v) in rows.items())
        return self.spark.sql(f"SELECT * FROM VALUES {values} AS (k, p, v)").repartition(2)

    @property
    def target(self):
        return DeltaTable.forPath(self.spark, self.path).alias("t")

    def check(self, changed=(), *, overwritten=()):
        """Rows that are there keep their ids, changed ones get the version, new ones fresh ids."""
        version = self.log.snapshot().version
        found = self.log.to_arrow(columns=["k", "p", "v", ID, VERSION]).to_pylist()
        assert {row["k"]: (row["p"], row["v"]) for row in found} == self.rows
        assert len(found) == len(self.rows)
        now = {row["k"]: (row[ID], row[VERSION]) for row in found}
        for k in overwritten:
            self.ids.pop(k, None)
        new = {row_id for k, (row_id, _) in now.items() if k not in self.ids}
        assert not new & self.given
        assert len({row_id for row_id, _ in now.values()}) == len(now)
        self.given |= new
        for k, (row_id, row_version) in now.items():
            before = self.ids.get(k)
            assert before is None or before[0] == row_id
            is_new = before is None or k in changed
            assert row_version == (version if is_new else before[1]), k
        self.ids = now

    def append(self, rows):
        write(self.frame(rows), self.path, mode="append", **self.options)
        self.rows |= rows
        self.check()

    def delete(self, condition, is_hit):
        self.target.delete(condition)
        self.rows = {k: row for k, row in self.rows.items() if not is_hit(k, *row)}
        self.check()

    def update(self, condition, is_hit):
        self.target.update(condition, {"v": "concat(v, '+')", "p": "(p + 1) % 3"})
        hit = [k for k, row in self.rows.items() if is_hit(k, *row)]
        for k in hit:
            p, v = self.rows[k]
            self.rows[k] = ((p + 1) % 3, v + "+")
        self.check(hit)

    def merge(self, source, *, by_source=None):
        merge = self.target.merge(self.frame(source).alias("s"), "t.k = s.k")
        merge = merge.whenMatchedDelete("s.v = 'gone'").whenMatchedUpdate(
            "s.v != 'stays'", {"v": "s.v"}
        )
        merge = merge.whenNotMatchedInsertAll("s.v != 'gone'")
        if by_source is not None:
            merge = merge.whenNotMatchedBySourceUpdate(f"t.k = {by_source}", {"v": "'alone'"})
        merge.execute()
        changed = []
        for k, (p, v) in source.items():
            if k not in self.rows:
                if v != "gone":
                    self.rows[k] = (p, v)
            elif v == "gone":
                del self.rows[k]
            elif v != "stays":
                self.rows[k] = (self.rows[k][0], v)
                changed.append(k)
        if by_source in self.rows and by_source not in source:
            self.rows[by_source] = (self.rows[by_source][0], "alone")
            changed.append(by_source)
        self.check(changed)

    def replace(self, rows, least):
        write(self.frame(rows), self.path, mode="overwrite", replaceWhere=f"k >= {least}")
        gone = [k for k in self.rows if k >= least]
        self.rows = {k: row for k, row in self.rows.items() if k < least} | rows
        self.check(overwritten=gone)
