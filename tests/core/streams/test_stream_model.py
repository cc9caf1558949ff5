"""Random histories, options and restarts: what a stream gives is what the rules say (spec 11.3)."""

from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner

STEPS = ("append", "append", "append", "delete file", "delete row", "optimize", "look", "restart")


@dataclass
class Model:
    """A table as sets of rows, one set per file, and what a stream over it should have given."""

    options: dict[str, str]
    files: list[set[int]] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    coming: list[tuple[str, list[int]]] = field(default_factory=list)
    next_id: int = 0
    has_begun: bool = False

    def new_rows(self, count: int) -> list[int]:
        rows = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        self.files.append(set(rows))
        self.coming.append(("add", rows))
        return rows

    def whole_table(self) -> list[int]:
        return sorted(row for file in self.files for row in file)

    def read_on(self) -> str | None:
        """Take what has come; the kind of the error, if the stream may not read on."""
        if not self.has_begun:
            self.given += self.whole_table()
            self.has_begun, self.coming = True, []
            return None
        while self.coming:
            what, rows = self.coming[0]
            if what == "delete" and not self._allows("ignoreDeletes"):
                return "DELTA_SOURCE_IGNORE_DELETE"
            if what == "rewrite":
                if not self._allows("ignoreChanges"):
                    return "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
                if "skipChangeCommits" in self.options:
                    rows = []
            self.given += rows
            self.coming.pop(0)
        return None

    def _allows(self, option: str) -> bool:
        return bool({option, "ignoreChanges", "skipChangeCommits"} & set(self.options))


def read_on(planner, start, crashes):
    """The rows of all batches to come, the end, and the kind of an error; some are run twice."""
    found = []
    while True:
        try:
            end = planner.latest_offset(start, planner.capacity())
            if end == start:
                return found, start, None
            (view,) = planner.views_between(start, end)
        except OptimistError as error:
            return found, start, error.kind
        rows = to_arrow(view)["id"].to_pylist()
        if crashes:
            fresh = StreamPlanner.of(planner.table, planner.options, planner.newest)
            (again,) = fresh.views_between(start, StreamOffset.from_json(end.to_json()))
            assert sorted(to_arrow(again)["id"].to_pylist()) == sorted(rows)
            planner = fresh
        found += rows
        start = end


@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 3)), max_size=14),
    options=st.sampled_from(
        [{}, {"ignoreDeletes": "true"}, {"ignoreChanges": "true"}, {"skipChangeCommits": "true"}]
    ),
    max_files=st.sampled_from(["1", "2", "1000"]),
    has_vectors=st.booleans(),
    crashes=st.booleans(),
)
def test_a_stream_gives_what_the_rules_say(
    tmp_path_factory, steps, options, max_files, has_vectors, crashes
):
    log = DeltaLog.for_path(tmp_path_factory.mktemp("t") / "table", {})
    model = Model(options)
    append = lambda rows: log.append(pa.table({"id": pa.array(rows, pa.int64())}))  # noqa: E731
    append(model.new_rows(2))
    if has_vectors:
        log.alter.set_properties({"delta.enableDeletionVectors": "true"})
        model.coming.append(("add", []))
    parsed = StreamOptions.parse({**options, "maxFilesPerTrigger": max_files}, int)
    planner = StreamPlanner.of(log.table, parsed, log.snapshot)
    position, given_rows, kind = None, [], None
    for step, number in [*steps, ("look", 1)]:
        if step == "append":
            append(model.new_rows(number))
        elif step == "delete file" and model.files:
            gone = model.files.pop(number % len(model.files))
            log.delete(f"id IN ({', '.join(map(str, gone))})")
            model.coming.append(("delete", []))
        elif step == "delete row" and any(len(file) > 1 for file in model.files):
            file = next(file for file in model.files if len(file) > 1)
            log.delete(f"id = {file.pop()}")
            model.coming.append(("rewrite", sorted(file)))
        elif step == "optimize" and len(model.files) > 1:
            log.optimize()
            model.files = [set(model.whole_table())]
            model.coming.append(("add", []))
        elif step == "restart":
            planner = StreamPlanner.of(log.table, parsed, log.snapshot)
        elif step == "look" and kind is None:
            expected = model.read_on()
            found, position, kind = read_on(planner, position, crashes)
            given_rows += found
            assert kind == expected
    assert sorted(given_rows) == sorted(model.given)
