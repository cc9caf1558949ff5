"""The repository keeps its own promises: documents, packages and gate."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import shutil
import stat
import subprocess
import sys
from collections import OrderedDict
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import mypy.api
import pytest

from optimist.core import errors
from optimist.core.options.engine import DELTA_PREFIX, OWN_PREFIX, EngineOptions
from optimist.spark.commands.reading.change_feed import CHANGE_OPTIONS
from optimist.spark.commands.writing.write_options import WRITE_OPTIONS

pytestmark = pytest.mark.sample(1)

ROOT = Path(__file__).resolve().parent.parent
NAMESPACE = ROOT / "optimist"
ROOMS = tuple(
    name
    for name in ("cli", "core", "deltalake", "locks", "logstores", "spark")
    if (NAMESPACE / name).is_dir()
)
FOLDER_OF = {"deltalake": "deltalake_api"}
"""The folders of the rooms that are not called as they are imported."""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def table_rows(text: str) -> dict[str, list[str]]:
    """The rows of all tables in a page: first cell's code -> the other cells."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        match = re.fullmatch(r"`([^`]+)`", cells[0]) if line.startswith("| `") else None
        if match:
            rows[match.group(1)] = cells[1:]
    return rows


# The documents


def documented_name(item_keys: tuple[str, ...]) -> str:
    key = item_keys[0]
    return key.removeprefix(DELTA_PREFIX).removeprefix("spark.").removeprefix(OWN_PREFIX)


def shown_default(value: object) -> str:
    if value is None:
        return "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


OPTIONS = [item for item in fields(EngineOptions) if "keys" in item.metadata]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_has_a_row_with_its_default_in_the_page_of_options(option) -> None:
    rows = table_rows(read("docs/options.md"))
    for key in option.metadata["keys"]:
        shown = key if key in rows else documented_name((key,))
        assert shown in rows, f"docs/options.md has no row for {key}"
        assert rows[shown][0] == shown_default(option.default)


def test_the_page_of_options_has_no_row_for_an_option_that_is_not_there() -> None:
    known = {documented_name((key,)) for option in OPTIONS for key in option.metadata["keys"]}
    known |= {key for option in OPTIONS for key in option.metadata["keys"]}
    known |= {"properties.defaults.*"}
    known |= {*WRITE_OPTIONS, "versionAsOf", "timestampAsOf", *CHANGE_OPTIONS}  # of single calls
    assert set(table_rows(read("docs/options.md"))) <= known


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_read_by_somebody(option) -> None:
    sources = (path for room in ROOMS for path in (NAMESPACE / room).rglob("*.py"))
    uses = re.compile(rf"\.{option.name}\b")
    assert any(uses.search(path.read_text(encoding="utf-8")) for path in sources)


CLASSES = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_error_is_explained(name: str) -> None:
    assert f"`{name}`" in read("docs/errors.md")


def test_the_readme_s_example_without_spark_runs_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```python\n(import pyarrow.*?)```", read("README.md"), re.DOTALL)
    assert example is not None
    exec(example.group(1).replace("/data/flights", str(tmp_path / "flights")), {})
    told = capsys.readouterr().out
    assert told.startswith("0 1\n")
    assert told.count("part-00000-") == 1, "one file can hold rows of month 1 with such a delay"


def test_readme_and_contributing_name_only_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+)", read("README.md") + read("CONTRIBUTING.md")))
    assert named - {"their"} <= targets


def test_the_gate_runs_all_that_is_tested_and_the_oldest_packages() -> None:
    gate = ROOT / ".ci" / "run"
    assert gate.stat().st_mode & stat.S_IXUSR
    text = gate.read_text(encoding="utf-8").strip()
    parts = re.findall(r'^(?:part|sample) ".+" (?:\d+ )?make (.+)$', text, re.MULTILINE)
    assert [part.split()[0] for part in parts] == [
        "emulators",
        "test",
        "exhaustive-searches",
        "exhaustive-again",
        "exhaustive-examples",
        "test-fsspec",
        "test-oldest",
    ]
    assert text.endswith(f"make {parts[-1]}")
    assert "\nmake test " in read("README.md")


def test_the_gate_tells_what_each_part_took_and_which_failed_and_samples_less_if_slow(
    tmp_path: Path,
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / ".ci" / "acceptance").touch()
    (tmp_path / "localstack").mkdir()
    (tmp_path / "localstack" / "down.py").write_text("print('servers are down')\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "make").write_text(
        '#!/bin/sh\necho "made $*"\n[ "$1" != test ] || sleep 2\ntest "$1" != "$FAILING"\n'
    )
    (tools / "make").chmod(0o755)

    def run(failing: str, usual: str = "900") -> tuple[int, str]:
        done = subprocess.run(
            ["bash", ".ci/run"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "FAILING": failing,
                "USUAL_SECONDS": usual,
            },
        )
        return done.returncode, done.stdout

    status, told = run("nothing")
    assert status == 0
    assert len(re.findall(r"^ +\d+ s  ", told, re.MULTILINE)) == 8, "seven parts and all of them"
    assert "failed:" not in told
    assert "made exhaustive-again ONE_IN=30\n" in told
    status, told = run("nothing", usual="1")
    assert status == 0
    one_in = re.search(r"^made exhaustive-again ONE_IN=(\d+)$", told, re.MULTILINE)
    assert one_in is not None
    assert int(one_in[1]) >= 60, "twice as slow as usual: half of the sample"
    status, told = run("exhaustive-again")
    assert status != 0
    assert "servers are down" in told
    assert re.search(r"^ +failed: races and left-out tests, one in 30$", told, re.MULTILINE)
    assert "made exhaustive-examples" not in told


@pytest.mark.parametrize("job", ["run", "nightly"])
def test_what_the_gate_samples_is_the_same_in_full(job: str) -> None:
    """A hostile table's number means another table without the Delta Acceptance Tests."""
    assert "\nsource .ci/acceptance\n" in read(f".ci/{job}")


# The lanes: `make test` runs tests/ and integration/, `make exhaustive` their exhaustive/ and what
# is marked as costly.


EXHAUSTIVE = [ROOT / name / "exhaustive" for name in ("tests", "tests/spark", "integration")]


def recipe_of(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)
    assert found is not None, target
    return found.group(1)


def test_no_test_belongs_to_no_lane() -> None:
    left_to_others = re.search(r"^DRIVER_TESTS = (\S+)$", read("Makefile"), re.MULTILINE)
    assert left_to_others is not None
    assert "\nORDINARY = tests integration --ignore=$(DRIVER_TESTS)\n" in read("Makefile")
    house = "$(addprefix --ignore=,$(HOUSE))"
    assert f'-m "not race and not again" $(ORDINARY) {house}' in recipe_of("tests")
    assert "$(AT_ONCE) check servers\n" in recipe_of("ready")
    assert "$(HOUSE)" in recipe_of("house")
    assert '-m "race or again" $(ORDINARY)' in recipe_of("exhaustive-again")
    assert "$(DRIVER_TESTS)" in recipe_of("test-fsspec")
    assert "$(EXHAUSTIVE)" in recipe_of("exhaustive-searches")
    folders = " ".join(path.relative_to(ROOT).as_posix() for path in EXHAUSTIVE)
    assert f"\nEXHAUSTIVE = {folders}\n" in read("Makefile")
    for line in (
        "test: $(if $(TESTS),,ready) tests",
        "test-all: test exhaustive test-fsspec",
        "exhaustive: exhaustive-searches $(if $(TESTS),,exhaustive-again exhaustive-examples)",
    ):
        assert f"\n{line}\n" in read("Makefile")
    places = [path.relative_to(ROOT).parts for path in ROOT.glob("[!.]*/**/test_*.py")]
    # Packages that emulators brought along have tests, too, in folders that begin with a dot.
    lanes = {parts[0] for parts in places if not any(part.startswith(".") for part in parts)}
    assert lanes - {"build"} == {"tests", "integration"}


def test_pytest_leaves_out_one_folder_and_no_test() -> None:
    settings = read("pyproject.toml").partition("[tool.pytest.ini_options]")[2]
    assert re.search(r'^norecursedirs = \["\.\*", "build", "exhaustive"\]', settings, re.MULTILINE)
    assert not re.search(r"\"-m\"|--ignore|--deselect|-k", settings, re.MULTILINE)
    folders = [path for name in ("tests", "integration") for path in (ROOT / name).rglob("*/")]
    left_out = [path for path in folders if path.name in ("build", "exhaustive")]
    assert sorted(left_out) == sorted(EXHAUSTIVE)


def test_of_what_costs_much_a_part_runs_and_no_parameter_loses_a_value(request) -> None:
    def of_a_table(x: object, tmp_path: Path) -> None: ...

    def of_nothing(x: object) -> None: ...

    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    cases = [f"tests/spark/test_x.py::test_many[{x}-{y}]" for x in range(18) for y in "abc"]
    few = [f"tests/spark/test_x.py::test_few[{x}]" for x in range(2)]
    chosen = [f"tests/spark/test_x.py::test_chosen[{x}]" for x in range(12)]
    texts = [f"tests/spark/test_x.py::test_texts[{x}]" for x in range(12)]
    tables = [f"tests/test_repository.py::test_tables[{x}]" for x in range(12)]
    pairs = [f"tests/test_repository.py::test_pairs[{x}]" for x in range(2)]
    items = [
        SimpleNamespace(
            nodeid=case,
            fixturenames=["tmp_path", "spark"] if case in (*cases, *few, *chosen) else [],
            function=of_nothing if case in texts else of_a_table,
            callspec=SimpleNamespace(params={"x": case}),
            get_closest_marker=lambda _, is_marked=case in chosen: is_marked,
        )
        for case in [*cases, *few, *chosen, *texts, *tables, *pairs]
    ]
    left_out = [item.nodeid for item in conftest._beyond_the_sample(items)]
    stay = [case for case in cases if case not in left_out]
    assert len(stay) == 9
    assert {case[-2] for case in stay} == set("abc")
    assert len(set(few) - set(left_out)) == 1
    assert len(set(tables) - set(left_out)) == 4
    assert not {*chosen, *texts, *pairs} & set(left_out)


def test_modules_with_a_spark_session_are_dealt_to_two_workers(request) -> None:
    files = ["test_write", "test_scan", "merge/test_merge", "exhaustive/test_odd"]
    of_spark = [f"tests/spark/{file}.py::test_{i}" for file in files for i in range(9)]
    others = [
        "tests/spark/test_spark_connect.py::test_g",
        "tests/core/transaction/test_races.py::test_e",
        "tests/locks/test_own_locks.py::TestX::test_f[y]",
        "tests/exhaustive/test_many_processes.py::test_h",
        "tests/exhaustive/test_many_processes.py::test_i",
    ]
    sharing_class = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))._Sharing
    workers = [_Worker([*of_spark, *others]) for _ in range(3)]
    sharing = _sharing_among(workers, sharing_class, request.config)
    assert sharing._split_scope(others[0]) == "tests/spark/test_spark_connect.py"
    assert sharing._split_scope(others[2]) == "tests/locks/test_own_locks.py::TestX"
    assert sharing._split_scope(others[3]) == others[3]
    sharing.schedule()
    while sharing.has_pending:
        for worker in filter(lambda worker: worker.waiting, workers):
            sharing.mark_test_complete(worker, worker.do_next())
    assert sorted(test for worker in workers for test in worker.done) == sorted(of_spark + others)
    with_session = [len(set(worker.done) & set(of_spark)) for worker in workers]
    assert with_session == [18, 18, 0]
    assert all(worker.shutting_down for worker in workers)


class _Worker:
    """What xdist's scheduler wants of a worker: tests are given to it by their numbers."""

    def __init__(self, collection: list[str]) -> None:
        self.collection = collection
        self.waiting: list[int] = []
        self.done: list[str] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id=id(self))

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.waiting += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def do_next(self) -> int:
        index = self.waiting.pop(0)
        self.done.append(self.collection[index])
        return index


def _sharing_among(workers: list[_Worker], sharing_class: type, config: pytest.Config):
    sharing = sharing_class.__new__(sharing_class)
    sharing.config, sharing.log = config, lambda *_: None
    sharing.numnodes, sharing.collection, sharing.workqueue = len(workers), None, OrderedDict()
    sharing.assigned_work, sharing.registered_collections = {}, {}
    for worker in workers:
        sharing.add_node(worker)
        sharing.add_node_collection(worker, worker.collection)
    return sharing


def test_the_hooks_before_a_commit_are_those_of_make_check() -> None:
    parts = re.search(r"\$\(AT_ONCE\) \$\(APART\) ([a-z ]+)$", recipe_of("check"), re.MULTILINE)
    assert parts is not None
    hooks = re.findall(r"^ +entry: make ([a-z]+)$", read(".pre-commit-config.yaml"), re.MULTILINE)
    assert hooks == parts.group(1).split()
    assert read(".pre-commit-config.yaml").count("- id: ") == len(hooks)


# The packages


def test_every_package_of_the_rooms_is_listed_for_the_wheel() -> None:
    folders = {
        path.parent.relative_to(NAMESPACE).as_posix()
        for room in ROOMS
        for path in (NAMESPACE / room).rglob("__init__.py")
    }
    listed = re.search(r"^packages = \[(.*?)\]", read("pyproject.toml"), re.MULTILINE | re.DOTALL)
    assert listed is not None
    packages = set(re.findall(r'"optimist\.([\w.]+)"', listed.group(1)))
    assert {name.replace(".", "/") for name in packages} == folders


def test_every_file_of_the_rooms_that_is_no_python_is_in_the_wheel() -> None:
    data = re.search(
        r"^\[tool.setuptools.package-data\]\n((?:.+\n)+)", read("pyproject.toml"), re.M
    )
    assert data is not None
    packed = set()
    for package, patterns in re.findall(r'^"optimist\.([\w.]+)" = \[(.*)\]', data[1], re.M):
        for pattern in re.findall(r'"([^"]+)"', patterns):
            packed |= set((NAMESPACE / package.replace(".", "/")).glob(pattern))
    files = {path for room in ROOMS for path in (NAMESPACE / room).rglob("*") if path.is_file()}
    assert {path for path in files if path.suffix not in (".py", ".pyc")} == packed


def test_the_folder_of_the_namespace_holds_a_link_to_each_room_and_nothing_else() -> None:
    links = {path.name: path for path in (ROOT / "optimist").iterdir() if path.name[0] not in "._"}
    assert {name: str(path.readlink()) for name, path in links.items()} == {
        room: f"../{FOLDER_OF.get(room, room)}" for room in ROOMS
    }


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_in_all_is_there(room: str) -> None:
    package = importlib.import_module(f"optimist.{room}")
    names = [f"optimist.{room}"]
    names += [item.name for item in pkgutil.walk_packages(package.__path__, f"optimist.{room}.")]
    missing = []
    for name in names:
        module = importlib.import_module(name)
        missing += [f"{name}.{x}" for x in getattr(module, "__all__", ()) if not hasattr(module, x)]
    assert missing == []


def modules_after(statement: str) -> set[str]:
    """What a fresh Python has loaded once it has run the statement."""
    program = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_core_imports_without_spark_and_without_any_store() -> None:
    loaded = modules_after("from optimist.core import DeltaLog")
    assert "pyarrow" in loaded
    assert not {name for name in loaded if name.split(".")[0] in ("pyspark", "py4j")}
    assert not {
        name for name in loaded if name.startswith(("optimist.spark", "optimist.logstores"))
    }


@pytest.mark.parametrize("contract", ["logstore", "arbiter", "lease"])
def test_a_contract_of_plug_ins_imports_neither_arrow_nor_a_parser_of_sql(contract: str) -> None:
    loaded = modules_after(f"import optimist.core.{contract}")
    assert f"optimist.core.plugins.{contract}" in loaded
    assert not loaded & {"pyarrow", "fsspec"}


ROUNDS = (
    "-x",
    "abs(x)",
    "round(x, 1)",
    "x + 1",
    "2 * x",
    "x ** 2",
    "sum([x, x])",
    "x.quantize(x)",
    "x.normalize()",
    "decimal.localcontext()",
    "decimal.getcontext()",
)
"""What is rounded to the thread's context, or changes it; `x` is a decimal."""


def test_the_type_check_finds_arithmetic_on_decimals(tmp_path: Path) -> None:
    place = re.search(r'^mypy_path = "\$MYPY_CONFIG_FILE_DIR/(\w+)"', read("pyproject.toml"), re.M)
    assert place is not None
    config = tmp_path / "mypy.ini"
    config.write_text(
        f"[mypy]\nmypy_path = {ROOT / place.group(1)}\ncache_dir = {tmp_path / 'cache'}\n"
    )
    program = tmp_path / "program.py"
    lines = ["import decimal", "x = decimal.Decimal(1)", "assert x < 2", *ROUNDS]
    program.write_text("\n".join(lines))
    told, _, _ = mypy.api.run(["--config-file", str(config), str(program)])
    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", told)}
    assert found == set(range(4, len(lines) + 1)), told
