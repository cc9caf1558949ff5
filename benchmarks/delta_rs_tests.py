"""Run delta-rs' own Python tests under its name with `optimist.deltalake` behind it.

`python benchmarks/delta_rs_tests.py CHECKOUT [pytest arguments]` takes a checkout of delta-rs at a
tag of deltalake 1.6, whose tests are not a part of this repository. `OPTIMIST_DELTA_RS` may name it
instead. The tests also need `arro3-io`, `pytest-benchmark` and `pytest-mock`.

The last lines say how many passed, and which tests do not pass although docs/deltalake_tests.md
does not list them, or the other way round; without such a test the result is 0.

This file is also the plug-in of that pytest: it puts our modules in the place of deltalake's before
anything imports them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn
from xml.etree import ElementTree

import arro3.core
import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "deltalake_tests.md"
NOT_PASSED = "do not pass"
SAME = ("exceptions", "query", "schema", "table", "transaction", "writer", "writer.properties")
NOT_OURS = {
    "": ("enable_nanosecond_timestamps", "init_tracing", "rust_core_version"),
    "._util": ("deprecate_positional_commit_args", "encode_partition_value"),
    ".fs": ("DeltaStorageHandler",),
    ".table": ("DeltaTableConfig",),
    ".transaction": ("AddAction", "create_table_with_add_actions"),
    ".writer._conversion": ("_convert_arro3_schema_to_delta",),
    ".writer._utils": ("try_get_deltatable", "try_get_table_and_table_uri"),
}
"""What the tests import, and we have not."""
LEFT_OUT = "not (integration or benchmark or no_pyarrow or pyspark or lakefs or s3 or azure)"


def put_in_place() -> None:
    """Let `import deltalake` find our modules, and stand-ins for the private ones."""
    ours = importlib.import_module("optimist.deltalake")
    names: dict[str, ModuleType] = {"deltalake": ours}
    names |= {
        f"deltalake.{name}": importlib.import_module(f"optimist.deltalake.{name}") for name in SAME
    }
    private = ModuleType("deltalake._internal")
    private.__dict__["_NANOSECOND_TIMESTAMPS"] = False
    for module in ("exceptions", "schema", "transaction", "features"):
        private.__dict__.update(vars(importlib.import_module(f"optimist.deltalake.{module}")))
    names["deltalake._internal"] = private
    for module, missing in NOT_OURS.items():
        stand_in = names.setdefault(f"deltalake{module}", ModuleType(f"deltalake{module}"))
        stand_in.__dict__.update(dict.fromkeys(missing, not_here))
    return_arro3()
    for name in ("_disable_nanosecond_timestamps", "_nanosecond_timestamps_enabled"):
        setattr(ours, name, lambda: False)
    ours.DeltaTable._table = property(raw_table, lambda table, raw: setattr(table, _RAW, raw))
    sys.modules.update(names)


def raw_table(table: Any) -> Any:
    """Return what stands for the object of Rust: by it the tests find the files of the log."""
    known = SimpleNamespace(table_uri=lambda: table.table_uri.rstrip("/"))
    return getattr(table, _RAW, known)


def return_arro3() -> None:
    """Let methods return objects of arro3, as the tests expect; ours are pyarrow's."""
    table = importlib.import_module("optimist.deltalake.table").DeltaTable
    schema = importlib.import_module("optimist.deltalake.schema")
    query = importlib.import_module("optimist.deltalake.query").QueryBuilder
    methods = [(table, name) for name in ("scan", "load_cdf", "get_add_actions")]
    methods += [(query, "execute"), (schema._Type, "to_arrow"), (schema.Field, "to_arrow")]
    for owner, name in [*methods, (schema.Schema, "to_arrow")]:
        setattr(owner, name, in_arro3(getattr(owner, name)))


def in_arro3(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose result is of arro3's class of the same name."""

    @functools.wraps(method)
    def wrapped(*args: Any, **options: Any) -> Any:
        found = method(*args, **options)
        if isinstance(found, pa.RecordBatchReader):
            found = found.cast(pa.schema([item.with_type(as_view(item)) for item in found.schema]))
        name = "DataType" if isinstance(found, pa.DataType) else type(found).__name__
        return getattr(arro3.core, name).from_arrow(found)

    return wrapped


def as_view(item: pa.Field) -> pa.DataType:
    """Return the type that deltalake gives a column of a stream."""
    views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
    return views.get(item.type, item.type)


def not_here(*_: object, **__: object) -> NoReturn:
    """Stand for a private function of deltalake: tests of it fail, and others can be read."""
    raise NotImplementedError("a private part of deltalake")


def main(arguments: list[str]) -> int:
    """Run the tests, compare those that do not pass with the page, and print the figures."""
    given = arguments[:1] or [os.environ.get("OPTIMIST_DELTA_RS", "")]
    folder = Path(given[0]) / "python"
    if not given[0] or not (folder / "tests" / "conftest.py").is_file():
        sys.exit("Name a checkout of delta-rs, or set OPTIMIST_DELTA_RS.")
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.xml"
        _run(folder, [f"--junitxml={results}", *arguments[1:]])
        outcomes = Counter(_outcomes(results))
    for outcome, number in Counter(outcome for outcome, _ in outcomes.elements()).items():
        print(f"{number:5}  {outcome}")
    found = Counter({name: n for (outcome, name), n in outcomes.items() if outcome == NOT_PASSED})
    listed = left_out()
    for name in sorted({*found, *listed}):
        if found[name] != listed[name] and (found[name] or not arguments[1:]):
            print(f"{name}: {found[name]} do not pass, and {PAGE.name} lists {listed[name]}")
    return int(found != listed)


def left_out() -> Counter[str]:
    """Return how many tests of each function do not pass, as the page has them."""
    rows = re.findall(r"^- `(test_\w+\.py::\w+)`(?: \((\d+)\))?", PAGE.read_text(), re.MULTILINE)
    return Counter({name: int(number or 1) for name, number in rows})


def _run(folder: Path, options: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "tests", "-p", "delta_rs_tests", "-q", "--tb=short"]
    command += ["-o", "addopts=", "-m", LEFT_OUT, "-p", "no:cacheprovider"]
    paths = [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        _MARK: "1",
        "COLUMNS": "240",
    }
    subprocess.run([*command, *options], cwd=folder, env=environment, check=False)


def _outcomes(results: Path) -> Iterator[tuple[str, str]]:
    """Yield the outcome of each test, and its file and function."""
    for case in ElementTree.parse(results).iter("testcase"):
        file = case.attrib["classname"].rpartition(".")[2]
        kinds = {child.tag for child in case}
        outcome = "passed"
        if kinds & {"failure", "error"}:
            outcome = NOT_PASSED
        elif "skipped" in kinds:
            outcome = "skipped or expected to fail"
        yield outcome, f"{file}.py::{case.attrib['name'].partition('[')[0]}"


_RAW = "_raw_of_deltalake"
_MARK = "DELTA_RS_TESTS_OF_OPTIMIST"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
if os.environ.get(_MARK):
    put_in_place()
