"""What ALTER TABLE is given that is of another type is refused by its name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import ArgumentTypeError

WRONG = {
    "values": lambda alter: alter.set_properties([("a", "b")]),
    "new_name": lambda alter: alter.rename_column("n", 5),
    "name": lambda alter: alter.add_constraint(5, "n > 0"),
    "expression": lambda alter: alter.add_constraint("c", 5),
    "the name dropped": lambda alter: alter.drop_constraint(5),
    "domain": lambda alter: alter.set_domain(5, "text"),
    "configuration": lambda alter: alter.set_domain("own", 5),
    "the domain removed": lambda alter: alter.remove_domain(5),
    "data_type": lambda alter: alter.add_columns([NewColumn("m", int)]),
    "the data_type changed": lambda alter: alter.change_columns([ColumnChange("n", 5)]),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_argument(tmp_path, what):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"n": [1]}))
    log.alter.set_properties({"delta.feature.domainMetadata": "supported"})
    with pytest.raises(ArgumentTypeError, match="Nothing was done") as caught:
        WRONG[what](log.alter)
    assert caught.value.fields["argument"] in what
    assert log.snapshot().version == 1
