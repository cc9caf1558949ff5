"""Commits whose files are columns, held against the same commits with a value for each file."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from optimist.core.errors import OptimistError, TableError
from optimist.core.log import file_lines
from optimist.core.log.checksum import checksum_of_files, read_checksum
from optimist.core.log.file_table import files_table, with_column
from optimist.core.log.many_files import ManyFiles
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

RESTORE = Operation("RESTORE")
WRITE = Operation.write("Overwrite")
REMOVED_MS = 1_700_000_000_123
TRACKED = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "domainMetadata", "rowTracking"))
MARK = 500

odd_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"', "\\", '\\"', "a\nb", "\r\t\f\b", "\x00", "\x1f\x7f", "50%25", "ünï\u2028", ""]
)
longs = st.integers(0, 2**63 - 1)
vectors = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from(["u", "i", "p"]),
    path_or_inline_dv=odd_texts,
    size_in_bytes=st.integers(0, 2**31 - 1),
    cardinality=longs,
    offset=st.none() | st.integers(0, 2**31 - 1),
    max_row_index=st.none() | longs,
)
stats_texts = st.one_of(
    st.builds(lambda n: json.dumps({"numRecords": n}), st.integers(0, 40)),
    st.builds(lambda t: json.dumps({"numRecords": 3, "minValues": {"x": t}}), odd_texts),
    st.builds(
        lambda t: f'{{"numRecords": 4,\n "s": {json.dumps(t, ensure_ascii=False)}}}', odd_texts
    ),
)
broken_stats = st.none() | st.sampled_from(
    ["", "{", "[]", '{"numRecords":-1}', '{"numRecords":"5"}']
)
values_of_p = st.one_of(st.none(), st.sampled_from(["1", "2"]), odd_texts)
partitions = st.builds(lambda v: {"p": v}, values_of_p)


def adds(*, may_be_wrong: bool) -> st.SearchStrategy[AddFile]:
    return st.builds(
        AddFile,
        path=st.sampled_from(["a", "b/c", "d%20e", "f g", "file:/x/y"]) | odd_texts,
        partition_values=partitions | st.just({}) if may_be_wrong else partitions,
        size=st.integers(0, 2**40),
        modification_time=st.integers(-(2**63), 2**63 - 1),
        data_change=st.just(True),
        stats=stats_texts | broken_stats if may_be_wrong else stats_texts,
        tags=st.none() | st.dictionaries(odd_texts, st.none() | odd_texts, max_size=2),
        deletion_vector=st.none() | vectors,
        base_row_id=st.none() | st.integers(0, 2 * MARK),
        default_row_commit_version=st.none() | longs,
        clustering_provider=st.none() | odd_texts,
    )


class Repeats(MemoryLogStore):
    """A store whose client sends each commit twice, and tells only the second answer."""

    def put_if_absent(self, path, data):
        if path.endswith(".json"):
            super().put_if_absent(path, data)
        return super().put_if_absent(path, data)


def key(add: AddFile) -> tuple[str, str | None]:
    return add.path, add.deletion_vector and add.deletion_vector.unique_id


def many(added, removed) -> ManyFiles:
    return ManyFiles(files_table(added), files_table(removed), REMOVED_MS)


@given(st.lists(adds(may_be_wrong=True), max_size=5), st.integers(0, 2), st.integers(1, 3))
def test_the_lines_are_those_of_the_actions(files, start, rows):
    table = pa.concat_tables([files_table(files), files_table(files)]).slice(start)
    wanted = (*files, *files)[start:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_lines, "_BATCH_ROWS", rows)
        added = b"".join(file_lines.add_lines(table))
        removed = b"".join(file_lines.remove_lines(table, REMOVED_MS))
    assert added == actions_to_bytes(wanted)
    assert removed == actions_to_bytes([add.remove(REMOVED_MS) for add in wanted])


@pytest.mark.parametrize("column", ["path", "stats", "clusteringProvider"])
def test_a_text_of_a_checkpoint_that_is_not_utf_8_is_not_written_into_a_commit(make_table, column):
    table = make_table().create()
    files = files_table([table.add("a"), table.add("b")])
    damaged = pa.array([b"a", b"\xff\xfe"], pa.binary()).view(pa.string())
    many = ManyFiles(with_column(files, column, damaged), files.slice(0, 0), REMOVED_MS)
    with pytest.raises(TableError, match="UTF-8") as caught:
        table.log.start_transaction().commit_large((), RESTORE, files=many)
    assert caught.value.kind == "OPTIMIST_MALFORMED_ACTION"
    assert table.handle().snapshot().version == 0


@given(st.lists(adds(may_be_wrong=True), max_size=5))
def test_partitions_are_told_once_each(files):
    table = files_table(files)
    partitions = [dict(add.partition_values) for add in files]
    found = file_lines.distinct_partitions(table)
    assert len(found) == len({json.dumps(item) for item in found})
    assert all(item in found for item in partitions)
    assert all(item in partitions for item in found)
    columns = file_lines.distinct_partition_columns(table)
    assert {tuple(names) for names in columns} == {tuple(item) for item in partitions}


def outcome(table, commit) -> object:
    """What a commit wrote and left behind, or how it was refused."""
    try:
        version = commit(table.log.start_transaction())
    except OptimistError as error:
        return type(error), error.kind
    path = commit_path(table.log.log_path, version)
    info, *lines = table.store.read_bytes(path).split(b"\n")
    told = {**json.loads(info)["commitInfo"], "txnId": None}
    noted = read_checksum(table.store, table.log.log_path, version)
    snapshot = table.log.snapshot()
    fresh = table.handle().snapshot()
    for one in (snapshot, fresh):
        assert one.version == version
    live = [
        sorted(one.files.to_pylist(maps_as_pydicts="strict"), key=repr) for one in (snapshot, fresh)
    ]
    dead = [sorted(one.tombstones.to_pylist(), key=repr) for one in (snapshot, fresh)]
    assert live[0] == live[1]
    assert dead[0] == dead[1]
    # Where the checksum of the version before is not known, it is summed up anew or left out; and
    # it is left out where a sum is too large for it.
    found = summed_up(fresh)
    assert noted is None or noted == (found and replace(found, txn_id=noted.txn_id))
    return told, lines, live[0], dead[0]


def summed_up(snapshot):
    state = snapshot._state
    return checksum_of_files(state.files.table(), state=state.table, options=EngineOptions())


@pytest.mark.again
@pytest.mark.sample(4)
@pytest.mark.parametrize("is_tracked", [False, True])
@pytest.mark.parametrize("is_wrong", [False, True])
@settings(
    max_examples=25,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_commit_is_the_same_with_columns_as_with_a_value_for_each_file(
    data, is_tracked, is_wrong, make_table
):
    unique_by = None if is_wrong else key
    some = st.lists(adds(may_be_wrong=is_wrong), max_size=4, unique_by=unique_by)
    live = data.draw(st.lists(adds(may_be_wrong=False), max_size=4, unique_by=key))
    removed = data.draw(st.lists(st.sampled_from(live), unique_by=key) if live else st.just([]))
    added = data.draw(some)
    domain = DomainMetadata("delta.rowTracking", json.dumps({"rowIdHighWaterMark": MARK}))
    configuration = data.draw(
        st.sampled_from([{}, {"delta.appendOnly": "true"}, {"delta.rowTrackingSuspended": "true"}])
        if is_wrong
        else st.just({})
    )

    def made():
        protocol = TRACKED if is_tracked else None
        table = make_table(protocol=protocol, configuration=configuration)
        return table.create(*((domain,) if is_tracked else ()), *live)

    by_values = outcome(
        made(),
        lambda txn: (
            txn.commit_large(
                (*added, *(add.remove(REMOVED_MS) for add in removed)), RESTORE
            ).version
        ),
    )
    by_columns = outcome(
        made(), lambda txn: txn.commit_large((), RESTORE, files=many(added, removed)).version
    )
    assert by_columns == by_values


OTHERS = ["nobody", "an append", "a removal of one of the files", "itself"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("winner", OTHERS)
@pytest.mark.parametrize("is_tracked", [False, True])
@settings(
    max_examples=25,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_files_are_removed_as_columns_as_by_a_value_for_each(data, is_tracked, winner, make_table):
    live = data.draw(st.lists(adds(may_be_wrong=False), min_size=1, max_size=4, unique_by=key))
    removed = data.draw(st.lists(st.sampled_from(live), min_size=1, unique_by=key))
    others = st.one_of(*2 * [adds(may_be_wrong=False)], st.sampled_from(removed))
    added = data.draw(st.lists(others, max_size=3, unique_by=key))
    added = [replace(add, data_change=data.draw(st.integers(0, 4)) > 0) for add in added]
    mode = data.draw(st.sampled_from(["off", "fatal"]))
    level = data.draw(st.sampled_from(["Serializable", "WriteSerializable"]))
    has_read = data.draw(st.booleans())
    append_only = data.draw(st.sampled_from(["false", "false", "false", "true"]))
    configuration = {"delta.isolationLevel": level, "delta.appendOnly": append_only}
    domain = DomainMetadata("delta.rowTracking", json.dumps({"rowIdHighWaterMark": MARK}))
    progress = SetTransaction("app", 7)

    def landed(*, as_columns):
        store = Repeats() if winner == "itself" else None
        options = {"spark.databricks.delta.commitValidation.consistentDataChange.mode": mode}
        protocol = TRACKED if is_tracked else None
        table = make_table(
            store=store, protocol=protocol, configuration=configuration, options=options
        )
        table.create(*((domain,) if is_tracked else ()), *live)

        def commit(txn):
            if has_read:
                txn.filter_files()
            other = table.handle().start_transaction()
            if winner == "an append":
                other.commit([], Operation("OPTIMIZE"))
            elif winner == OTHERS[2]:
                other.commit([removed[0].remove(1)], Operation("DELETE"))
            removes = [add.remove(REMOVED_MS) for add in removed]
            if not as_columns:
                return txn.commit((progress, *removes, *added), WRITE).version
            files = replace(many([], removed), are_all=False)
            return txn.commit((progress, *added), WRITE, files=files).version

        return outcome(table, commit)

    assert landed(as_columns=True) == landed(as_columns=False)
