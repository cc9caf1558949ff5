"""What all commands share: options, errors in one line, exit codes, secrets."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from optimist.cli import by_need
from optimist.cli.app import app
from optimist.cli.confs import gathered_options
from optimist.core.errors import ConfigError, StorageError

SECRET = "geheim-7f3a"


def test_typer_s_runner_sees_the_same_commands(table):
    done = CliRunner().invoke(app, ["count", table, "--output", "json"])
    assert (done.exit_code, done.stdout) == (0, '{\n "rows": 13\n}\n')
    assert "history" in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize(
    ("arguments", "status", "part"),
    [
        (["nix"], 2, "No such command"),
        (["count"], 2, "Missing argument"),
        (["count", "{table}", "--nix"], 2, "No such option"),
        (["count", "{table}", "--output", "xml"], 2, "xml"),
        (["count", "{table}", "--version", "x"], 2, "--version"),
        (["count", "{table}", "--version", "-1"], 2, "--version"),
        (["count", ""], 2, "path"),
        (["count", "{table}x"], 3, "Nearby there is: {table}."),
        (["count", "{table}", "--version", "9"], 3, "the versions 0 to 3"),
        (["count", "{table}", "--where", "a ="], 2, "line 1, column 4"),
        (["count", "{table}", "--where", "nix = 1"], 2, "nix"),
        (["count", "nix://host/x"], 2, "nix"),
        (["head", "{table}", "--columns", "nix"], 2, "nix"),
        (["cat", "{table}", "--format", "xml"], 2, "xml"),
        (["changes", "{table}"], 2, "--from"),
        (["count", "{table}", "--conf-file", "/does/not/exist"], 2, "/does/not/exist"),
        (["count", "{table}", "--conf", SECRET], 2, "1. --conf"),
        (["count", "{table}", "--conf", f"optimist.nix={SECRET}"], 2, "optimist.nix"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(shell, table, arguments, status, part):
    ran = shell(*(each.replace("{table}", table) for each in arguments))
    assert ran.status == status
    assert ran.output == ""
    assert ran.errors.startswith("optimist: ")
    assert ran.errors.count("\n") == 1, ran.errors
    assert part.replace("{table}", table) in ran.errors
    assert SECRET not in ran.errors


def test_without_arguments_help_is_shown(shell):
    ran = shell()
    assert ran.status == 0
    assert "Commands:" in ran.output


def test_a_traceback_only_with_debug_and_without_secrets(shell, table, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError(f"s3://key:{SECRET}@bucket/x\x1b[31m\nline")

    monkeypatch.setattr(by_need.DeltaLog, "for_path", broken)
    ran = shell("count", table)
    assert (ran.status, ran.errors.count("\n")) == (3, 1)
    assert "\x1b" not in ran.errors
    assert "error in Optimist" in ran.errors
    debug = shell("count", table, "--debug")
    assert "Traceback" in debug.errors
    assert SECRET not in ran.errors + debug.errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageError("down", kind="OPTIMIST_STORE_FAILED"), 3),
        (ConfigError("wrong", kind="OPTIMIST_INVALID_OPTION"), 2),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_exit_codes_of_errors(shell, table, monkeypatch, error, status):
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(by_need.DeltaLog, "for_path", fails)
    assert shell("count", table).status == status


def test_options_come_from_environment_file_and_command_line(tmp_path, monkeypatch):
    file = tmp_path / "spark-defaults.conf"
    file.write_text("# mine\n\nspark.a file\nspark.b = x = y\nspark.c\tfile\n")
    found = gathered_options(
        ["spark.c=line", "spark.d="],
        str(file),
        {"OPTIMIST_CONF": "spark.a=env\nspark.e=env", "OPTIMIST_CONF_FILE": "/not/read"},
    )
    assert dict(found) == {
        "spark.a": "file",
        "spark.b": "x = y",
        "spark.c": "line",
        "spark.d": "",
        "spark.e": "env",
    }
    assert dict(gathered_options([], None, {"OPTIMIST_CONF_FILE": str(file)}))["spark.a"] == "file"


@pytest.mark.parametrize("text", [SECRET, f"={SECRET}", f" ={SECRET}"])
def test_what_is_no_option_is_refused_unseen(tmp_path, text):
    file = tmp_path / "conf"
    file.write_text(text.strip())
    for call in (
        lambda: gathered_options([text], None, {}),
        lambda: gathered_options([], str(file), {}),
        lambda: gathered_options([], None, {"OPTIMIST_CONF": text}),
    ):
        with pytest.raises(ConfigError) as raised:
            call()
        assert SECRET not in str(raised.value)


def test_a_file_of_options_that_is_no_text_is_refused(tmp_path):
    file = tmp_path / "conf"
    file.write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        gathered_options([], str(file), {})
