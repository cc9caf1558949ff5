"""Large batches of actions, which the sets of files and of tombstones take as they are."""

from random import Random  # noqa: TID251 - a history is its seed

import pyarrow as pa
import pytest

from optimist.core.log import file_set, replay
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.replay import LogState, with_files
from optimist.core.protocol.actions import AddFile


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [2, 1_000])
def test_many_large_batches_leave_the_last_action_of_each_file(monkeypatch, seed, most):
    for module in (file_set, replay):
        monkeypatch.setattr(module, "LARGE_BATCH_ROWS", 4)
    monkeypatch.setattr(file_set, "_MAX_LARGE", most)
    chance = Random(seed)
    state, live, gone = LogState.empty(), {}, {}
    for step in range(12):
        actions = []
        for number in range(chance.choice([1, 3, 4, 9])):
            name = f"f{chance.randint(0, 15)}"
            add = AddFile(name, {}, 100 * step + number, 1, True)
            if chance.random() < 0.6:
                actions.append(add)
                live[name] = add.size
                gone.pop(name, None)
            else:
                actions.append(add.remove(step))
                live.pop(name, None)
                gone[name] = step
        state = with_files(state, file_actions_batch(actions))
        wanted = [f"f{number}" for number in range(chance.randint(0, 15))]
        some = state.files.rows_in_memory(pa.array(wanted, pa.string()))
        sizes = dict(zip(some["path"].to_pylist(), some["size"].to_pylist(), strict=True))
        assert sizes == {name: live[name] for name in wanted if name in live}
        if chance.random() < 0.2:
            state.files.table()
    files, tombstones = state.files.table(), state.tombstones.table()
    found = dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))
    assert files.num_rows == len(live)
    assert found == live
    assert sorted(tombstones["path"].to_pylist()) == sorted(gone)
