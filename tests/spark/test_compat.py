"""The name `delta`: there when it is asked for, gone afterwards, never over the real package."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from optimist.core import errors
from optimist.core.errors import ConfigError
from optimist.spark import DeltaTable, compat, configure_spark_with_delta_pip


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
