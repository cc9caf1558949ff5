"""The command line as a process: pipes that close, Ctrl-C, terminals, and what is imported."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import optimist.core

ROOT = Path(__file__).parents[2]
OPTIMIST = [sys.executable, "-m", "optimist.cli"]


def started(*arguments: str, **settings: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*OPTIMIST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings
    )


def test_the_module_runs_commands(table):
    process = started("count", table, "-o", "json")
    output, errors = process.communicate()
    assert (process.returncode, output, errors) == (0, b'{\n "rows": 13\n}\n', b"")


def test_a_reader_that_goes_away_is_no_error(table):
    with started("cat", table) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_a_command_in_one_line():
    program = (
        "import sys, time\n"
        "from optimist.cli import by_need\n"
        "from optimist.cli.app import run\n"
        "def slow(*_):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
        "by_need.DeltaLog.for_path = slow\n"
        "sys.exit(run(['count', 'x']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.count(b"\n") == 1
    assert b"Interrupted" in errors


def in_terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    main, end = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    process = subprocess.Popen([*OPTIMIST, *arguments], stdout=end, stderr=end, env=env)
    os.close(end)
    written = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(main)
    assert process.wait() == 0
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_shows_tables_within_80_columns_and_colours_only_if_wanted(table):
    told = in_terminal("history", table, NO_COLOR="1")
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines())) <= 80
    assert "\x1b[3" not in told, "a colour"
    assert "DELETE" in told


def test_help_loads_no_engine():
    program = (
        "import sys\n"
        "from optimist.cli.app import run\n"
        "run(['--help'])\n"
        "print(sorted({'pyarrow', 'numpy', 'pandas', 'pyspark', 'rich.table'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a command has loaded at its end."""
    program = (
        "import sys\n"
        "from optimist.cli import __main__ as program\n"
        f"sys.argv = ['optimist', *{arguments!r}]\n"
        "try:\n"
        "    program.main()\n"
        "except SystemExit as end:\n"
        "    print(end.code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.mark.parametrize("command", ["count", "history"])
def test_no_command_loads_spark_or_pandas(table, command):
    assert not {"pandas", "pyspark", "py4j"} & loaded_by(command, table)


ROOMS_OF_THE_LOG = {"data", "errors", "log", "options", "plugins", "protocol", "runtime", "schema"}
ROOMS_OF_THE_LOG |= {"requests", "snapshot", "statements", "table", "values"}


@pytest.mark.parametrize("command", ["detail", "history"])
def test_a_command_that_needs_the_log_alone_loads_nothing_for_rows_and_writes(table, command):
    loaded = loaded_by(command, table)
    rooms = {name.split(".")[2] for name in loaded if name.startswith("optimist.core.")}
    modules = {path.stem for path in Path(optimist.core.__file__).parent.glob("*.py")}
    assert rooms - modules <= ROOMS_OF_THE_LOG


def test_without_typer_the_missing_packages_are_named():
    program = (
        "import sys\nsys.modules['typer'] = None\nfrom optimist.cli.__main__ import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "optimist[cli]" in done.stderr
