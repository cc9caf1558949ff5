"""The script of a release builds what the commit holds, and refuses everything else."""

from __future__ import annotations

import importlib.util
import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
METADATA = """\
Metadata-Version: 2.4
Name: optimist
Version: 0.1.0
Provides-Extra: a
Provides-Extra: b
Provides-Extra: c
Provides-Extra: dev
Requires-Dist: numpy
Requires-Dist: optimist[b]; extra == 'a'
Requires-Dist: optimist[c]; extra == "b"
Requires-Dist: pandas; extra == "c"
"""


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WORK", tmp_path)
    monkeypatch.setattr(module, "DIST", tmp_path / "dist")
    monkeypatch.setattr(module, "_tracked", lambda *_: iter(["core/a.py", "locks/b.py"]))
    return module


def wheel_of(folder: Path, names: Iterable[str]) -> Path:
    path = folder / "optimist-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as files:
        for name in names:
            files.writestr(name, "x")
        files.writestr("optimist-0.1.0.dist-info/METADATA", METADATA)
    return path


def test_a_wheel_with_each_file_of_the_rooms_is_taken(release: ModuleType, tmp_path: Path) -> None:
    release.check_contents(wheel_of(tmp_path, ["optimist/core/a.py", "optimist/locks/b.py"]))


@pytest.mark.parametrize(
    "names",
    [
        ["optimist/core/a.py"],
        ["optimist/core/a.py", "optimist/locks/b.py", "tests/conftest.py"],
    ],
    ids=["lacks one", "has one too many"],
)
def test_a_wheel_with_other_files_is_refused(
    release: ModuleType, tmp_path: Path, names: list[str]
) -> None:
    with pytest.raises(release.ReleaseError, match=r"locks/b\.py|tests/conftest\.py"):
        release.check_contents(wheel_of(tmp_path, names))


@pytest.mark.parametrize(
    ("heading", "is_taken"),
    [
        ("## Unreleased: 0.1.0, the first version", True),
        ("## 0.1.0, 2026-12-01\n\n## 0.0.9, 2026-01-01", True),
        ("## 0.2.0, 2026-12-01\n\n## 0.1.0, 2026-01-01", False),
        ("no heading", False),
    ],
)
def test_the_changelog_begins_with_the_version(
    release: ModuleType, tmp_path: Path, heading: str, is_taken: bool
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    wheel = wheel_of(tmp_path, [])
    if is_taken:
        release.check_version(wheel)
    else:
        with pytest.raises(release.ReleaseError, match=r"0\.1\.0"):
            release.check_version(wheel)


def test_an_extra_brings_those_that_it_asks_for(release: ModuleType, tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, [])
    assert release.extras_of(wheel) == ["a", "b", "c"]
    assert release._implied(wheel, "a") == ["a", "b", "c"]
    assert release._implied(wheel, "") == []


def test_an_sdist_does_not_tell_when_it_was_built(release: ModuleType, tmp_path: Path) -> None:
    packed = []
    for time in (5, 6):
        sdist = tmp_path / f"{time}.tar.gz"
        with tarfile.open(sdist, "w:gz") as files:
            for name in ("b", "a") if time == 5 else ("a", "b"):
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uname = 3, time, f"user{time}"
                files.addfile(member, io.BytesIO(b"abc"))
        release._settle_times(sdist, 1_000_000_000)
        packed.append(sdist.read_bytes())
    assert packed[0] == packed[1]
    with tarfile.open(sdist) as files:
        assert [(each.name, each.mtime) for each in files] == [("a", 10**9), ("b", 10**9)]
        assert files.extractfile("b").read() == b"abc"


@pytest.mark.again
def test_the_newest_commit_is_built_twice_with_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, release: ModuleType, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(release, "WORK", tmp_path)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    sdist, wheel = release.build_twice()
    release.check_contents(wheel)
    release.check_version(wheel)
    with tarfile.open(sdist) as files:
        assert not [each.name for each in files if "/tests/" in each.name]
