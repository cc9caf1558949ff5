"""What an import of the core loads, and what it leaves to its first use."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import optimist.core
from optimist.core.snapshot import by_need as needed_by_versions
from optimist.core.table import by_need

HEAVY = {"adlfs", "azure", "boto3", "botocore", "deltalake", "fsspec", "gcsfs", "google", "hdfs"}
HEAVY |= {"pandas", "pyiceberg", "pyspark", "redis", "s3fs", "sqlalchemy"}


def run(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_handle_of_a_table_is_imported_without_pandas_sdks_and_upkeep():
    loaded = run("from optimist.core import DeltaLog; import sys; print(*sys.modules)")
    assert "optimist.core.table.delta_log" in loaded
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert not set(by_need._MODULES.values()) & set(loaded)
    assert not set(needed_by_versions._MODULES.values()) & set(loaded)


def test_the_names_of_the_core_are_imported_on_first_use():
    loaded = run("import optimist.core, sys; print(*sys.modules)")
    assert not {"pyarrow", "numpy", "pandas"} & set(loaded)


def test_a_handle_loads_what_arrow_imports_late_before_threads_can_use_it():
    loaded = run(
        "import sys; from optimist.core import DeltaLog; DeltaLog.for_path('/t')\n"
        "print(*sys.modules)"
    )
    assert "pyarrow.acero" in loaded
    assert ("pandas" in loaded) == (importlib.util.find_spec("pandas") is not None)


@pytest.mark.parametrize("module", [optimist.core, by_need, needed_by_versions])
def test_each_name_is_found_and_no_other(module):
    assert sorted(module.__all__) == sorted(module._MODULES)
    for name in module.__all__:
        assert getattr(module, name).__module__.startswith("optimist.core.")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


FORKING = """
import os, signal, sys, threading
from optimist.core.imports import import_by_need

sys.path.insert(0, sys.argv[1])
sys.begun, sys.may_end = threading.Event(), threading.Event()
os.register_at_fork(before=sys.may_end.set)
thread = threading.Thread(target=import_by_need, args=("slow_module",))
thread.start()
sys.begun.wait()
child = os.fork()
if not child:
    signal.alarm(30)
    import slow_module
    os._exit(0 if slow_module.is_done else 1)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_forked_during_an_import_does_not_wait_for_it(tmp_path: Path):
    slow = "import sys; sys.begun.set(); sys.may_end.wait(); is_done = True"
    (tmp_path / "slow_module.py").write_text(slow)
    assert run(FORKING, str(tmp_path)) == ["0"]
