"""The name `delta`: there when it is asked for, gone afterwards, never over the real package."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest
from pyspark.sql import SparkSession

from optimist.core import errors
from optimist.core.errors import ConfigError
from optimist.spark import DeltaTable, compat, configure_spark_with_delta_pip, disable
from optimist.spark.__main__ import main
from optimist.spark.commands.catalog.names import is_enabled


@pytest.fixture(autouse=True)
def removed():
    yield
    compat.remove()
    for name in [name for name in sys.modules if name.partition(".")[0] == "delta"]:
        del sys.modules[name]


def test_scripts_find_our_classes_by_the_names_of_delta():
    compat.install()
    compat.install()
    scope = {}
    exec(
        "import delta\n"
        "from delta import *\n"
        "from delta.tables import *\n"
        "import delta.exceptions\n"
        "from delta.exceptions import ConcurrentAppendException\n"
        "from delta.pip_utils import configure_spark_with_delta_pip as configure\n"
        "from delta.connect.tables import DeltaTable as OnConnect\n",
        scope,
    )
    assert scope["DeltaTable"] is scope["OnConnect"] is DeltaTable
    assert scope["delta"].tables.DeltaTable is DeltaTable
    assert scope["configure"] is scope["configure_spark_with_delta_pip"]
    assert scope["configure"] is configure_spark_with_delta_pip
    assert scope["ConcurrentAppendException"] is errors.ConcurrentAppendException
    assert scope["delta"].exceptions.MetadataChangedException is errors.MetadataChangedException
    assert scope["__version__"]
    assert {"DeltaMergeBuilder", "DeltaTableBuilder", "IdentityGenerator"} <= scope.keys()
    assert importlib.util.find_spec("delta").origin == compat.__file__


def test_what_delta_does_not_have_is_not_found():
    compat.install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("delta.nope")
    with pytest.raises(ImportError):
        exec("from delta.tables import Nope", {})


def test_it_is_gone_after_it_was_removed():
    compat.install()
    compat.remove()
    compat.remove()
    for name in ("delta", "delta.tables", "delta.exceptions"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    compat.install()
    assert importlib.import_module("delta.tables").DeltaTable is DeltaTable


@pytest.mark.parametrize("is_loaded", [False, True])
def test_another_package_of_that_name_is_left_alone(tmp_path, monkeypatch, is_loaded):
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("THEIRS = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    if is_loaded:
        importlib.import_module("delta")
    with pytest.raises(ConfigError) as caught:
        compat.install()
    assert caught.value.kind == "OPTIMIST_DELTA_PACKAGE_PRESENT"
    assert caught.value.fields["place"] == str(tmp_path / "delta" / "__init__.py")
    compat.remove()
    assert importlib.import_module("delta").THEIRS


def test_a_folder_of_that_name_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    compat.install()
    assert importlib.import_module("delta").DeltaTable is DeltaTable


def test_sessions_that_a_builder_hands_out_are_enabled_until_it_is_removed(spark):
    disable(spark)
    assert not is_enabled(spark)
    compat.install()
    assert is_enabled(SparkSession.builder.getOrCreate())
    disable(spark)
    compat.remove()
    assert not is_enabled(SparkSession.builder.getOrCreate())


@pytest.fixture
def command_line(monkeypatch):
    """Stand for `python -m optimist.spark` with these arguments."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["__main__.py", *arguments])
        monkeypatch.setattr(sys, "path", ["somewhere", *sys.path])
        main()

    return run


SCRIPT = (
    "import sys\nfrom delta.tables import DeltaTable\nimport neighbour\n"
    "print(__name__, sys.argv[1:], DeltaTable.__module__)\nsys.exit(neighbour.CODE)\n"
)


@pytest.mark.parametrize("as_module", [False, True])
def test_a_script_runs_as_python_would_run_it(
    tmp_path, monkeypatch, capsys, command_line, as_module
):
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "neighbour.py").write_text("CODE = 7\n")
    if as_module:
        monkeypatch.chdir(tmp_path)
    try:
        with pytest.raises(SystemExit) as caught:
            command_line(*(["-m", "job"] if as_module else [str(tmp_path / "job.py")]), "a", "-b")
    finally:
        sys.modules.pop("neighbour", None)
    assert caught.value.code == 7
    assert capsys.readouterr().out == f"__main__ ['a', '-b'] {DeltaTable.__module__}\n"


@pytest.mark.parametrize("arguments", [[], ["-m"], ["--help"], ["-c", "pass"]])
def test_without_a_script_it_says_what_it_takes(command_line, arguments):
    with pytest.raises(SystemExit, match=r"script\.py"):
        command_line(*arguments)
    assert "delta" not in sys.modules
