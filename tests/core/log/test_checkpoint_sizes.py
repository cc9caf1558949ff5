"""Whether a checkpoint may be read into memory as a whole."""

import io
from dataclasses import replace

import pyarrow.parquet as pq

from checkpoint_tables import Table, add
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.limits import DEFAULT_LIMITS
from optimist.core.log.names import classic_checkpoint_name
from optimist.core.plugins.logstore import FileStatus


def test_a_checkpoint_is_large_if_its_pages_are_whatever_they_are_packed_to():
    table = Table()
    text = '{"numRecords":1,"nullCount":{"s":' + " " * 2_000
    table.commit(*(add(f"f{number}", text=f"{text}{number % 2}}}}}") for number in range(200)))
    table.checkpoint()
    path = f"{table.path}/{classic_checkpoint_name(table.version)}"
    data = table.store.read_bytes(path)
    footer = pq.read_metadata(io.BytesIO(data))
    pages_bytes = sum(footer.row_group(n).total_byte_size for n in range(footer.num_row_groups))
    assert 4 * len(data) < pages_bytes
    for cache_bytes, is_small in ((2 * pages_bytes - 1, False), (2 * pages_bytes, True)):
        limits = replace(DEFAULT_LIMITS, cache_bytes=cache_bytes)
        files = [FileStatus(path, len(data), 0)]
        reader = CheckpointReader(table.store, table.version, files, limits)
        assert reader.is_small() == is_small
