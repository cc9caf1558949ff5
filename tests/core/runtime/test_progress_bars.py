"""Bars while tables are opened: in a terminal, in a notebook, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, FileProgress, progress_bar
from optimist.core.runtime import progress_bars
from optimist.core.runtime.opening_progress import watch_opening
from optimist.core.runtime.progress_bars import opening_bar
from optimist.logstores import LocalLogStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four commits, a checkpoint at the third one."""
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for number in range(4):
        log.append(pa.table({"x": [number]}))
        if number == 2:
            log.checkpoint()
    return log.table_path


def opened(path: str) -> None:
    snapshot = DeltaLog(path, LocalLogStore()).snapshot()
    snapshot.files  # noqa: B018 - reads the checkpoint
    assert snapshot.num_files == 4


class Watcher:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int | None]] = []
        self.ends = 0

    def tell(self, what: str, done: int, total: int | None) -> None:
        self.told.append((what, done, total))

    def end(self) -> None:
        self.ends += 1


def test_an_opening_tells_its_commits_and_files_only_in_the_block(path):
    watcher = Watcher()
    with watch_opening(watcher):
        opened(path)
    assert watcher.told[0] == ("commits", 1, 1)
    assert watcher.told[-1] == ("files", 3, None)
    assert watcher.ends == 2
    opened(path)
    assert watcher.ends == 2


def in_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")


def test_a_terminal_shows_long_openings_only(path, capsys, monkeypatch):
    with opening_bar():
        opened(path)
    in_terminal(monkeypatch)
    with opening_bar():
        opened(path)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(progress_bars, "_LONG_S", 0.0)
    with opening_bar():
        opened(path)
    written = capsys.readouterr()
    assert written.out == ""
    assert "open: files" in written.err
    assert written.err.endswith("\x1b[2K"), "it is gone"


def test_a_bar_shows_the_opening_within_its_work(path, capsys, monkeypatch):
    in_terminal(monkeypatch)
    with progress_bar("fsck") as bar:
        opened(path)
        bar(FileProgress("log", 1, 4))
    assert "fsck" in capsys.readouterr().err


class Display:
    """What IPython.display does in a notebook."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, shown: str, *, display_id: bool) -> Display:
        assert display_id
        self.shown.append(shown)
        return self

    def update(self, shown: str) -> None:
        self.shown.append(shown)


@pytest.mark.parametrize("kernel", [object(), None])
def test_a_notebook_shows_a_bar_that_is_gone_at_the_end(path, monkeypatch, kernel):
    display: Any = Display()
    shell = SimpleNamespace(kernel=kernel)
    notebook = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress_bars, "_PAUSE_S", 0.0)
    with progress_bar("<b>") as bar:
        opened(path)
        bar(FileProgress("log", 1, 4))
    if kernel is None:
        assert display.shown == []
        return
    assert display.shown[-2] == '&lt;b&gt; <progress value="1" max="4"></progress> 1 of 4'
    assert display.shown[-1] == ""
    assert any("files" in each for each in display.shown)
