"""The bootstrap script makes the environment, finds Java, and asks nothing."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script as a module whose environment, log and Java lie in a temporary folder."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / ".venv"
    for name, path in {
        "VENV": venv,
        "VENV_PYTHON": venv / "bin" / "python",
        "STAMP": venv / "bootstrap-stamp.json",
        "JAVA_HOME_FILE": venv / "java-home",
        "INSTALL_LOG": tmp_path / "bootstrap.log",
    }.items():
        monkeypatch.setattr(module, name, path)
    monkeypatch.setattr(module, "JAVA_PLACES", (str(tmp_path / "jvm" / "*"),))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return module


def put_java(home: Path, version: str) -> Path:
    """A program that answers as `java -version` of that version does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!/bin/sh\necho '    java.home = {home}' >&2\necho 'openjdk version \"{version}\"' >&2\n"
    )
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 0),
    ],
)
def test_java_version_is_read_from_what_java_prints(
    bootstrap: ModuleType, text: str, major: int
) -> None:
    assert bootstrap.java_version(text) == major


def test_java_home_wins_over_the_usual_places(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_java(tmp_path / "jvm" / "java-17", "17.0.1")
    given = put_java(tmp_path / "mine", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(given))
    assert bootstrap.find_java() == str(given)


def test_a_java_home_that_is_too_old_is_named_and_passed_over(
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = put_java(tmp_path / "jvm" / "java-17", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(put_java(tmp_path / "old", "11.0.22")))
    assert bootstrap.find_java() == str(usual)
    assert "holds Java 11" in capsys.readouterr().out


def test_of_the_usual_places_the_java_that_spark_is_tested_on_is_taken(
    bootstrap: ModuleType, tmp_path: Path
) -> None:
    put_java(tmp_path / "jvm" / "a-25", "25.0.1")
    put_java(tmp_path / "jvm" / "b-11", "11.0.1")
    tested = put_java(tmp_path / "jvm" / "c-21", "21.0.1")
    assert bootstrap.find_java() == str(tested)


def test_no_java_is_one_error_with_a_line_for_each_platform(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "_may_use_apt", lambda: False)
    assert bootstrap.main(["demo"]) == 1
    told = capsys.readouterr().err
    for hint in ("brew install", "apt-get install", "dnf install", "WSL"):
        assert told.count(hint) == 1
    assert not bootstrap.VENV.exists()


def test_root_on_a_debian_like_machine_gets_java_installed_and_is_told_first(
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "jvm" / "java-17"

    def install(packages: tuple[str, ...]) -> None:
        assert "installing it with apt-get" in capsys.readouterr().out
        assert packages[0] == "openjdk-17-jre-headless"
        put_java(home, "17.0.15")

    monkeypatch.setattr(bootstrap, "_may_use_apt", lambda: True)
    monkeypatch.setattr(bootstrap, "_apt_install", install)
    assert bootstrap.ensure_java() == str(home)


@pytest.fixture
def installs(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The extras of each installation, which is only noted; environments work if `bin` is there."""
    noted: list[list[str]] = []

    def make(uv: str | None) -> None:
        bootstrap.VENV_PYTHON.parent.mkdir(parents=True)
        bootstrap.VENV_PYTHON.touch()

    monkeypatch.setattr(bootstrap, "_make_venv", make)
    monkeypatch.setattr(bootstrap, "_venv_works", lambda needs_pip: bootstrap.VENV_PYTHON.exists())
    monkeypatch.setattr(bootstrap, "_install", lambda uv, extras: noted.append(extras))
    return noted


def test_a_second_run_with_the_same_extras_installs_nothing(
    bootstrap: ModuleType, installs: list[list[str]]
) -> None:
    bootstrap.ensure_environment(["test", "demo"])
    bootstrap.ensure_environment(["demo"])
    assert installs == [["demo", "test"]]


def test_more_extras_are_added_to_those_that_are_there(
    bootstrap: ModuleType, installs: list[list[str]]
) -> None:
    bootstrap.ensure_environment(["demo"])
    bootstrap.ensure_environment(["bench"])
    assert installs == [["demo"], ["bench", "demo"]]


def test_an_environment_beside_the_usual_one_leaves_that_alone(
    bootstrap: ModuleType, installs: list[list[str]], tmp_path: Path
) -> None:
    usual = bootstrap.VENV
    assert bootstrap.main(["--no-java", "--venv", str(tmp_path / "other"), "demo"]) == 0
    assert installs == [["demo"]]
    assert (tmp_path / "other" / "bootstrap-stamp.json").exists()
    assert not usual.exists()


def test_a_changed_pyproject_is_installed_again(
    bootstrap: ModuleType, installs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap.ensure_environment(["demo"])
    monkeypatch.setattr(bootstrap, "_project_hash", lambda: "another")
    bootstrap.ensure_environment(["demo"])
    assert installs == [["demo"], ["demo"]]


def test_an_installation_that_was_cut_short_is_done_again(
    bootstrap: ModuleType, installs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(uv: str | None, extras: list[str]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "_install", cut_short)
        with pytest.raises(KeyboardInterrupt):
            bootstrap.ensure_environment(["demo"])
    bootstrap.ensure_environment(["demo"])
    assert installs == [["demo"]]


def test_a_python_that_is_too_old_is_refused_in_one_line(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    assert bootstrap.main(["demo"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "needs Python 3.10 or newer; this is" in told


def test_the_script_has_no_syntax_that_old_pythons_can_t_read() -> None:
    ast.parse((ROOT / "bootstrap.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_a_command_that_fails_ends_in_its_last_lines_and_the_place_of_the_rest(
    bootstrap: ModuleType,
) -> None:
    program = "import sys; print('first'); print('the reason'); sys.exit(3)"
    with pytest.raises(bootstrap.BootstrapError, match=r"(?s)bootstrap\.log.*the reason"):
        bootstrap._run([sys.executable, "-c", program])
    assert "first" in bootstrap.INSTALL_LOG.read_text()
