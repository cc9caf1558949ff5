"""Histories of commands that change rows, on a real table and in a model of it, row by row.

A row is an id, which never changes, and a value. Each command reads the version at which it was
begun, and commits later. What a table holds in the end is to be what its commits, made one after
the other in their order, make of the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.data.row_tracking import carried_columns
from optimist.core.errors import DeltaConcurrentModificationException
from optimist.core.local.commands import CommandOptions, RowsChanged, delete, update
from optimist.core.local.commands import merge as merge_rows
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.log.file_table import add_files
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.transaction.conflicts.operations import Operation

DEFAULTS = "spark.databricks.delta.properties.defaults."
FILES, ROWS = 2, 4
"""Files of the table at first, and rows in each."""

TRACKED = ("_metadata.row_id", "_metadata.row_commit_version")
Rows = Mapping[int, int]


@dataclass(frozen=True)
class Command:
    """One command: what it does to a table, and what it does to rows."""

    name: str
    run: Callable[[DeltaLog, object], object]
    apply: Callable[[Rows], Rows]
    is_blind: bool = False

    def __repr__(self):
        return self.name


def deletes(low, high):
    """DELETE of a range of values."""
    return Command(
        f"delete[{low},{high})",
        lambda log, txn: delete(txn, within(low, high), CommandOptions()),
        lambda rows: {i: v for i, v in rows.items() if not low <= v < high},
    )


def updates(low, high, step):
    """UPDATE that adds to the values of a range, by vectors."""
    return Command(
        f"update[{low},{high})+{step}",
        lambda log, txn: update(txn, {"v": f"v + {step}"}, within(low, high), CommandOptions()),
        lambda rows: {i: v + step if low <= v < high else v for i, v in rows.items()},
    )


def appends(row_id, value):
    """A blind append of one row."""
    return appends_rows({row_id: value})


def appends_rows(rows):
    """A blind append of several rows, in one file."""
    return Command(
        f"append {rows}", lambda log, txn: append(txn, rows), lambda old: {**old, **rows}, True
    )


def upserts(rows, *, only_low=False):
    """MERGE by id: rows that are there get the value, the others are added.

    With `only_low` a row that is there changes only if its value is below 3, and keeps the other
    out all the same.
    """

    def run(log, txn):
        merge = log.merge(as_table(rows), ["id"])
        merge = merge.when_matched_update_all("t.v < 3" if only_low else None)
        request = merge.when_not_matched_insert_all()._request
        return merge_rows(txn, request, CommandOptions())

    def apply(old):
        changed = {i: v for i, v in rows.items() if not only_low or old.get(i, 0) < 3}
        return {**old, **changed}

    return Command(f"upsert {rows}{' low' * only_low}", run, apply)


def copies(low, high, offset):
    """INSERT of the table's own rows of a range, under new ids."""

    def run(log, txn):
        txn.filter_files(within(low, high))
        read = rows_of(to_arrow(txn.snapshot, within(low, high)))
        return append(txn, {i + offset: v for i, v in read.items()})

    return Command(
        f"copy[{low},{high})",
        run,
        lambda rows: {**rows, **{i + offset: v for i, v in rows.items() if low <= v < high}},
    )


def compacts(count, *, turned=False):
    """OPTIMIZE of the first files of the table, with the rows in their order or turned round."""
    return Command(
        f"compact {count}{' turned' * turned}",
        lambda log, txn: compact(txn, count, turned=turned),
        lambda rows: rows,
    )


def histories(count):
    """So many commands on the first rows, of which no two add a row with the same id."""
    return st.tuples(*map(_any_command, range(count)))


def _any_command(number):
    return st.one_of(
        st.builds(deletes, st.integers(0, 3), st.integers(3, 8)),
        st.builds(updates, st.integers(0, 5), st.integers(3, 8), st.sampled_from([-3, 2, 100])),
        st.builds(copies, st.integers(0, 3), st.integers(1, 8), st.just(1000 << number)),
        st.builds(appends, st.just(500 + number), st.integers(-1, 9)),
        st.builds(
            upserts,
            st.dictionaries(st.integers(0, 9), st.integers(-1, 9), min_size=1, max_size=3),
            only_low=st.booleans(),
        ),
        st.builds(compacts, st.integers(1, 2), turned=st.booleans()),
    )


def within(low, high):
    return f"v >= {low} AND v < {high}"


def append(txn, rows):
    return run_command(txn, lambda pending: written(txn, pending, rows)).commit


def compact(txn, count, *, turned=False):
    return rearrange(txn, add_files(txn.snapshot.files)[:count], turned=turned)


def compact_file_of(log, value, rows=None, *, turned=False):
    """Rewrite the file that begins with a value; with other rows, if some are given."""
    txn = log.start_transaction(log.snapshot())
    files = add_files(txn.filter_files(f"v = {value}"))
    rearrange(txn, files, rows, turned=turned)


def rearrange(txn, files, rows=None, *, turned=False):
    """What an OPTIMIZE of another engine does: it reads exactly these files."""

    def work(pending):
        table = table_of(txn, files)
        txn._reads.record_files(txn.snapshot.scan().split, table)
        moved = moved_rows(txn, table) if rows is None else as_table(rows)
        if turned:
            moved = moved.take(list(range(moved.num_rows))[::-1])
        changes = stored(txn, pending, moved, data_change=False)
        removes = tuple(file.remove(1, data_change=False) for file in files)
        return Changes((*removes, *changes.actions), Operation("OPTIMIZE"))

    return run_command(txn, work).commit


def moved_rows(txn, table):
    """The rows of some files, with the ids and versions that they carry to another file."""
    snapshot = txn.snapshot
    carried = carried_columns(snapshot.metadata, snapshot.protocol).names
    names = [*snapshot.schema.names, *TRACKED[: len(carried)]]
    view = snapshot.with_other_files(snapshot.metadata, table)
    return to_arrow(view, None, names).rename_columns([*snapshot.schema.names, *carried])


def restore_vectors(log, version):
    """What a RESTORE does to files whose vectors have changed since."""
    txn = log.start_transaction(log.snapshot())
    now = {file.path: file for file in add_files(txn.snapshot.files)}
    old = add_files(log.snapshot(version=version).files)
    changed = [file for file in old if now[file.path] != file]
    removes = [now[file.path].remove(1) for file in changed]
    txn.commit_large([*removes, *changed], Operation("RESTORE"))


def table_of(txn, files):
    paths = pa.array([file.path for file in files])
    return txn.snapshot.files.filter(pc.is_in(txn.snapshot.files["path"], paths))


def written(txn, pending, rows):
    return stored(txn, pending, as_table(rows))


def stored(txn, pending, rows, data_change=True):
    target = LocalTarget(txn, ProgressReport(txn.table.clock, None, "WRITE"))
    adds = RowWriter(target, pending).write([rows]).adds
    adds = tuple(replace(item, data_change=data_change) for item in adds)
    return Changes(adds, Operation.write("Append"))


def as_table(rows):
    return pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.int64())})


def rows_of(table):
    pairs = list(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert len(dict(pairs)) == len(pairs), f"rows were doubled: {sorted(pairs)}"
    return dict(pairs)


def make(path, options=None, **properties):
    """A table whose row i has the value i, in files of `ROWS` rows."""
    wanted = {"enableDeletionVectors": "true", **properties}
    conf = {f"{DEFAULTS}{name}": value for name, value in wanted.items()}
    log = DeltaLog.for_path(str(path), {**conf, **(options or {})})
    for first in range(0, FILES * ROWS, ROWS):
        log.append(as_table({i: i for i in range(first, first + ROWS)}))
    return log


def schedules(count) -> Iterator[tuple[int, ...]]:
    """The orders in which so many commands can begin and commit; each number stands there twice.

    Commands that begin one right after the other begin at the same version, in whatever order.
    """
    for order in itertools.permutations(range(count)):
        for starts in itertools.product(*(range(place + 1) for place in range(count))):
            schedule: list[int] = []
            for place, number in enumerate(order):
                begins = [late for late, start in zip(order, starts, strict=True) if start == place]
                schedule += [*sorted(begins), number]
            yield tuple(schedule)


def play(log, commands: Sequence[Command], schedule: Sequence[int]) -> list[Command]:
    """Run the commands as scheduled: first begin, then commit. Those that landed, in order.

    One that finds nothing to do commits nothing: it was done at the version that it read.
    """
    begun, landed = {}, []
    for number in schedule:
        if number not in begun:
            begun[number] = log.start_transaction(log.snapshot())
            continue
        try:
            done = commands[number].run(log, begun[number])
        except DeltaConcurrentModificationException:
            continue
        if commit_of(done) is not None:
            landed.append(commands[number])
    return landed


def commit_of(done):
    """The commit of a command; None if it found nothing to do."""
    return done.commit if isinstance(done, RowsChanged) else done


def run_until_landed(log, command, meet=lambda: None) -> int | None:
    """Run a command against others, again after each conflict; the version that it made.

    Args:
        log: The table.
        command: The command.
        meet: Called between the start of the first transaction and its commit.
    """
    waiting = [meet]

    def run(txn):
        if waiting:
            waiting.pop()()
        return command.run(log, txn)

    done = commit_of(
        run_until_it_lands(lambda: log.start_transaction(log.snapshot()), run, retry=True)
    )
    return None if done is None else done.version


def ensure_in_order_of_versions(log, made: Sequence[tuple[int | None, Command]]) -> None:
    """The table holds what the commands make of the rows in the order of their versions."""
    landed = sorted((pair for pair in made if pair[0] is not None), key=lambda pair: pair[0])
    assert [version for version, _ in landed] == list(range(FILES, FILES + len(landed)))
    ensure_serial(log, [command for _, command in landed])


def after(commands: Sequence[Command]) -> Rows:
    """What the commands make of the first rows, one after the other."""
    rows = {i: i for i in range(FILES * ROWS)}
    for command in commands:
        rows = command.apply(rows)
    return rows


def ensure_serial(log, landed: Sequence[Command], *, in_order: bool = True) -> None:
    """The table holds what the commits make of the rows in their order, or in some order."""
    found = rows_of(log.to_arrow())
    orders = [landed] if in_order else itertools.permutations(landed)
    assert any(found == after(order) for order in orders), f"{found} is not {after(landed)}"
    assert log.count() == len(found)
