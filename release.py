"""Build the packages of a release and try them: `make dist`.

1. It builds the sdist and the wheel of the newest commit twice, and compares the bytes.
2. It holds the files of the wheel against those of the commit, and lets `twine` check both.
3. It installs the wheel with each extra into a bare environment, and loads what the extra is for.
4. It runs the demo from there, in a folder outside the checkout.

The packages are then in `build/release/dist`. Nothing is published.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent
WORK = ROOT / "build" / "release"
DIST = WORK / "dist"
ENVIRONMENTS = WORK / "environments"
UV = ROOT / ".venv" / "bin" / "uv"
NOT_FOR_USERS = ("bench", "clouds", "dev", "docs", "test", "test-fsspec")
"""The extras for who works on this project; they need the checkout."""

_LOAD = """
import sys
from importlib.metadata import distribution
import optimist.core, optimist.locks, optimist.logstores
if "spark" in sys.argv[2:]:
    import optimist.spark
loaded = 0
for point in distribution("optimist").entry_points:
    if set(point.extras) <= set(sys.argv[2:]) and point.group != "console_scripts":
        point.load()
        loaded += 1
place = optimist.core.__file__
assert place.startswith(sys.prefix), f"{place} is not the installed one"
assert optimist.core.__version__ == sys.argv[1], optimist.core.__version__
print(loaded, "plug-ins load")
"""


class ReleaseError(Exception):
    """The packages are not what they should be; the message says how."""


def main(arguments: Sequence[str]) -> int:
    """Build and check the packages; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--no-installs", action="store_true", help="only build and compare")
    options = parser.parse_args(arguments)
    try:
        sdist, wheel = build_twice()
        check_contents(wheel)
        check_version(wheel)
        _say(f"{sdist.name}, {wheel.name}: the same bytes twice, and all files of the commit.")
        _run(_tool("twine", "check", "--strict", str(sdist), str(wheel)))
        if not options.no_installs:
            for extra in ("", *extras_of(wheel)):
                try_extra(wheel, extra)
            run_demo(wheel)
            shutil.rmtree(ENVIRONMENTS)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    _say(f"The packages are in {DIST.relative_to(ROOT)}.")
    return 0


# Building


def build_twice() -> tuple[Path, Path]:
    """Build the sdist and the wheel of the newest commit, and return their paths.

    Raises:
        ReleaseError: A second build gave other bytes.
    """
    shutil.rmtree(WORK, ignore_errors=True)
    first = _build(DIST)
    again = _build(WORK / "again")
    for one, other in zip(first, again, strict=True):
        if _digest(one) != _digest(other):
            raise ReleaseError(f"{one.name} has other bytes when it is built again.")
    return first


def _build(into: Path) -> tuple[Path, Path]:
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    # What is not committed is in no release.
    archive = _output("git", "archive", "--format=tar", "HEAD")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source, filter="tar")
    time = _output("git", "log", "-1", "--format=%ct").decode().strip()
    command = [str(UV), "build", "--quiet", "--no-create-gitignore", "--out-dir", str(into)]
    _run([*command, str(source)], SOURCE_DATE_EPOCH=time)
    (sdist,), (wheel,) = into.glob("*.tar.gz"), into.glob("*.whl")
    _settle_times(sdist, int(time))
    return sdist, wheel


def _settle_times(sdist: Path, time: int) -> None:
    """Write an sdist again with the commit's time, for setuptools writes that of the build."""
    packed = io.BytesIO()
    with (
        tarfile.open(sdist) as files,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as settled,
    ):
        for member in sorted(files.getmembers(), key=lambda each: each.name):
            member.mtime, member.pax_headers = time, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            settled.addfile(member, files.extractfile(member) if member.isfile() else None)
    sdist.write_bytes(packed.getvalue())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Checking


def check_contents(wheel: Path) -> None:
    """Refuse a wheel that lacks a file of the commit's rooms, or has another one.

    Raises:
        ReleaseError: It names the files.
    """
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if ".dist-info/" not in name}
    rooms = _rooms()
    wanted = set()
    for name in _tracked(*rooms):
        folder, _, rest = name.partition("/")
        wanted.add(f"optimist/{rooms[folder]}/{rest}")
    if held != wanted:
        lacks, more = sorted(wanted - held), sorted(held - wanted)
        raise ReleaseError(f"{wheel.name} lacks {lacks[:9]}, and has {more[:9]} too many.")


def check_version(wheel: Path) -> None:
    """Refuse a wheel of a version that the changelog does not begin with.

    Raises:
        ReleaseError: It names both.
    """
    version = _metadata(wheel)["Version"]
    changes = (WORK / "source" / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## .*?(\d+\.\d+\.\d+\S*?)[,\s]", changes, re.MULTILINE)
    if newest is None or newest[1] != version:
        told = newest and newest[1]
        raise ReleaseError(f"The version is {version}, and CHANGELOG.md begins with {told}.")


def extras_of(wheel: Path) -> list[str]:
    """Return the extras of a wheel that are for users."""
    every = _metadata(wheel).get_all("Provides-Extra") or []
    return [name for name in every if name not in NOT_FOR_USERS]


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        name = next(each for each in files.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(files.read(name).decode("utf-8"))


def _rooms() -> dict[str, str]:
    """Return the folders of the rooms, each with its name below `optimist`."""
    links = (path for path in (ROOT / "optimist").iterdir() if path.is_symlink())
    return {link.readlink().name: link.name for link in links}


def _tracked(*folders: str) -> Iterator[str]:
    names = _output("git", "ls-tree", "-r", "-z", "--name-only", "HEAD", *folders)
    yield from (name for name in names.decode("utf-8").split("\0") if name)


# Installing


def try_extra(wheel: Path, extra: str) -> None:
    """Install a wheel with an extra into a bare environment, and load what belongs to it.

    Raises:
        ReleaseError: It does not install, or something does not load.
    """
    python = _install(wheel, extra)
    version = _metadata(wheel)["Version"]
    with tempfile.TemporaryDirectory() as elsewhere:
        told = _output(str(python), "-c", _LOAD, version, *_implied(wheel, extra), at=elsewhere)
    _say(f"optimist{f'[{extra}]' if extra else ''}: {told.decode().strip()}.")


def run_demo(wheel: Path) -> None:
    """Run the demo with the installed wheel, in a folder outside the checkout.

    Raises:
        ReleaseError: The demo failed.
    """
    python = _install(wheel, "demo")
    java = (ROOT / ".venv" / "java-home").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory() as elsewhere:
        examples = Path(elsewhere) / "examples"
        shutil.copytree(ROOT / "examples", examples)
        _run([str(python), "flights.py"], at=str(examples), JAVA_HOME=java)
    _say("The demo ran.")


def _install(wheel: Path, extra: str) -> Path:
    place = ENVIRONMENTS / (extra or "plain")
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    python = place / "bin" / "python"
    if not python.exists():
        _run([str(UV), "venv", "--quiet", "--python", sys.executable, str(place)])
        _run([str(UV), "pip", "install", "--quiet", "--python", str(python), wanted])
    return python


def _implied(wheel: Path, extra: str) -> list[str]:
    """Return an extra with those that it asks for, as `demo` asks for `spark`."""
    every = _metadata(wheel).get_all("Requires-Dist") or []
    found, at = [extra], 0
    while at < len(found):
        for line in every:
            asked = re.match(rf"optimist\[([\w,-]+)\].*extra == ['\"]{found[at]}['\"]", line)
            if asked is not None:
                found += [name for name in asked[1].split(",") if name not in found]
        at += 1
    return [name for name in found if name]


# Running


def _tool(name: str, *arguments: str) -> list[str]:
    return [str(UV), "tool", "run", "--quiet", name, *arguments]


def _run(command: Sequence[str], at: str | None = None, **variables: str) -> None:
    if subprocess.run(command, cwd=at or ROOT, env=_environment(variables), check=False).returncode:
        raise ReleaseError(f"This failed: {' '.join(command)}")


def _output(*command: str, at: str | None = None) -> bytes:
    found = subprocess.run(
        command, cwd=at or ROOT, env=_environment({}), stdout=subprocess.PIPE, check=False
    )
    if found.returncode:
        raise ReleaseError(f"This failed: {' '.join(command)}")
    return found.stdout


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command; none of them may lead Python back to the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **variables}


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
