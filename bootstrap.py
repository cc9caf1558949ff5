"""Make or update the environment of this checkout: `python3 bootstrap.py test`.

It finds a Python 3.10+ and, for Spark, a Java 17+, makes `.venv` (with uv where it is there), and
installs this project, editable, with the extras named on the command line. A second run with
nothing to do takes no time. Nothing is ever asked. `.venv/java-home` says which Java was found.
`--venv build/other` makes an environment beside it, for what can't share one.

Only the standard library, and only syntax that Python 3.6 reads: an old `python3` must get as far
as finding a newer one.
"""

import argparse
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "bootstrap-stamp.json"
JAVA_HOME_FILE = VENV / "java-home"
INSTALL_LOG = ROOT / "build" / "bootstrap.log"

OLDEST_PYTHON = (3, 10)
KNOWN_PYTHONS = ("python3.12", "python3.13", "python3.11", "python3.10")
OLDEST_JAVA = 17
# What Spark is tested on comes first; JAVA_HOME and PATH are the user's word and come before these.
PREFERRED_JAVAS = (17, 21)
JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
JAVA_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
JAVA_HINTS = (
    "  macOS:          brew install openjdk@17",
    "  Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless",
    "  Fedora, RHEL:   sudo dnf install java-17-openjdk-headless   (or java-21-openjdk-headless)",
    "  Windows:        use WSL (wsl --install), and there the line for Ubuntu",
)


class Stamp(NamedTuple):
    """What a finished run left in `.venv`."""

    project: str
    root: str
    extras: "list[str]"


class BootstrapError(Exception):
    """Something is missing that only the user can mend; the message says what to do."""


def main(arguments: "list[str]") -> int:
    """Do what the command line asks; the exit code."""
    options = _parse(arguments)
    if options.venv:
        _work_in(ROOT / options.venv)
    try:
        _ensure_python(arguments)
        if options.java:
            ensure_java()
        ensure_environment(options.extras)
        if options.java:
            _remember_java()
    except BootstrapError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def ensure_environment(extras: "list[str]") -> None:
    """Make `.venv` hold this project with at least these extras.

    The stamp is written last, so a run that was cut short is never taken for a finished one.
    """
    stamp = _read_stamp()
    wanted = Stamp(_project_hash(), str(ROOT), sorted({*extras, *stamp.extras}))
    if stamp == wanted and VENV_PYTHON.exists():
        return
    if STAMP.exists():
        STAMP.unlink()
    uv = shutil.which("uv")
    if stamp.root != wanted.root or not _venv_works(needs_pip=uv is None):
        _make_venv(uv)
    _install(uv, wanted.extras)
    partial = STAMP.with_suffix(".partial")
    partial.write_text(json.dumps(wanted._asdict()))
    partial.replace(STAMP)
    _say(f"The environment is ready in {_shown()}.")


def ensure_java() -> str:
    """Return the home of a Java 17+, which root on a Debian-like machine installs if needed.

    Raises:
        BootstrapError: There is none, and we may not or cannot install one.
    """
    home = _remembered_java() or find_java()
    if home is None and _may_use_apt():
        _say("Spark needs Java 17 or newer, and there is none: installing it with apt-get.")
        _apt_install(JAVA_PACKAGES)
        home = find_java()
    if home is None:
        hints = "\n".join(JAVA_HINTS)
        raise BootstrapError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none in JAVA_HOME, on PATH or "
            f"in the usual places. Install one and run this again:\n{hints}"
        )
    os.environ["JAVA_HOME"] = home
    return home


def find_java() -> "str | None":
    """Find the home of a Java 17+ by JAVA_HOME, PATH or the usual places, or return None."""
    given = os.environ.get("JAVA_HOME")
    if given:
        version, home = java_at(Path(given) / "bin" / "java")
        if version >= OLDEST_JAVA:
            return home
        found = f"Java {version}" if version else "no Java that runs"
        _say(f"JAVA_HOME={given} holds {found}; Spark needs {OLDEST_JAVA}+. Looking elsewhere.")
    on_path = shutil.which("java")
    if on_path:
        version, home = java_at(Path(on_path))
        if version >= OLDEST_JAVA:
            return home
    usual = [java_at(Path(home) / "bin" / "java") for home in _usual_homes()]
    usable = [found for found in usual if found[0] >= OLDEST_JAVA]
    usable.sort(key=lambda found: (found[0] not in PREFERRED_JAVAS, found[0]))
    return usable[0][1] if usable else None


def java_at(executable: Path) -> "tuple[int, str]":
    """(major version, home) as this `java` tells them itself; version 0 if it does not run."""
    if not executable.is_file():
        return 0, ""
    # The home is asked for too: on macOS, and with jenv or asdf, `java` on PATH is only a stub.
    told = _output([str(executable), "-XshowSettings:properties", "-version"])
    home = re.search(r"^\s*java\.home = (.+?)\s*$", told, re.MULTILINE)
    return (java_version(told), home.group(1)) if home else (0, "")


def java_version(text: str) -> int:
    """Read the major version from `java -version`: 17 for "17.0.15", 8 for "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else 0


def _usual_homes() -> "list[str]":
    patterns = [str(Path(place).expanduser()) for place in JAVA_PLACES]
    return sorted(home for pattern in patterns for home in glob.glob(pattern))  # noqa: PTH207


def _parse(arguments: "list[str]") -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make or update the environment of this checkout.")
    parser.add_argument(
        "extras", nargs="*", help="extras of pyproject.toml, for example: test demo"
    )
    parser.add_argument(
        "--no-java", dest="java", action="store_false", help="what will run needs no Spark"
    )
    parser.add_argument("--venv", help="where to make it, instead of .venv")
    return parser.parse_args(arguments)


def _work_in(venv: Path) -> None:
    global VENV, VENV_PYTHON, STAMP
    VENV, VENV_PYTHON, STAMP = venv, venv / "bin" / "python", venv / "bootstrap-stamp.json"


def _shown() -> str:
    return os.path.relpath(str(VENV), str(ROOT))


def _ensure_python(arguments: "list[str]") -> None:
    """Go on as it is, or start again under a newer Python that is on PATH."""
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return
    for name in KNOWN_PYTHONS:
        newer = shutil.which(name)
        # Version managers leave shims for versions that are switched off: only running one tells.
        if newer and _output([newer, "-c", "print('runs')"]).strip() == "runs":
            sys.stdout.flush()
            os.execv(newer, [newer, str(Path(__file__).resolve()), *arguments])
    raise BootstrapError(
        "Optimist needs Python 3.10 or newer; this is {}.{} and no newer one is on PATH.".format(
            *sys.version_info[:2]
        )
    )


def _project_hash() -> str:
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


def _read_stamp() -> Stamp:
    try:
        return Stamp(**json.loads(STAMP.read_text()))
    except (OSError, ValueError, TypeError):
        return Stamp("", str(ROOT), [])


def _venv_works(*, needs_pip: bool) -> bool:
    """Whether `.venv` has a Python that starts and is new enough, in this very place."""
    probe = "import sys; print(sys.prefix, *sys.version_info[:2])"
    told = _output([str(VENV_PYTHON), "-c", ("import pip; " if needs_pip else "") + probe]).split()
    return (
        len(told) == 3 and Path(told[0]) == VENV and (int(told[1]), int(told[2])) >= OLDEST_PYTHON
    )


def _make_venv(uv: "str | None") -> None:
    if VENV.exists():
        _say(f"Removing {_shown()}: it does not work (half made, moved, or its Python is gone).")
        shutil.rmtree(VENV)
    how = "uv and" if uv else "venv and"
    _say(f"Making {_shown()} with {how} {sys.executable}.")
    if uv:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)])
        return
    if find_spec("ensurepip") is None:
        _install_venv_module()
    _run([sys.executable, "-m", "venv", str(VENV)])


def _install_venv_module() -> None:
    """Debian ships Python without the part of `venv` that brings pip."""
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    if not _may_use_apt():
        raise BootstrapError(
            "This Python has no ensurepip. Install it (Debian, Ubuntu: sudo apt-get install "
            f"{package}) or install uv, and run this again."
        )
    _say("This Python has no ensurepip: installing it with apt-get.")
    _apt_install((package, "python3-venv"))


def _install(uv: "str | None", extras: "list[str]") -> None:
    target = ".[{}]".format(",".join(extras)) if extras else "."
    _say(f"Installing {target} into {_shown()}. The first time takes some minutes.")
    if uv:
        command = [uv, "pip", "install", "--python", str(VENV_PYTHON), "--editable", target]
    else:
        command = [str(VENV_PYTHON), "-m", "pip", "install", "--editable", target]
        command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    _run(command, shown=re.compile(r"^(Collecting|Building wheels|Installing collected|Resolved)"))


def _remembered_java() -> "str | None":
    """Return the Java of the last run, if JAVA_HOME names no other and it still exists."""
    if "JAVA_HOME" in os.environ or not JAVA_HOME_FILE.exists():
        return None
    home = JAVA_HOME_FILE.read_text().strip()
    return home if Path(home, "bin", "java").exists() else None


def _remember_java() -> None:
    JAVA_HOME_FILE.write_text(os.environ["JAVA_HOME"] + "\n")


def _may_use_apt() -> bool:
    return (
        platform.system() == "Linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None
    )


def _apt_install(candidates: "tuple[str, ...]") -> None:
    """Install the first of the packages that this release of the system has."""
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    _run(["apt-get", "update", "--quiet"])
    for package in candidates:
        if _output(["apt-cache", "show", package]):
            _say(f"apt-get install {package}")
            _run(["apt-get", "install", "--yes", "--no-install-recommends", package])
            return
    raise BootstrapError("apt-get knows none of: {}.".format(", ".join(candidates)))


def _output(command: "list[str]") -> str:
    """Return the output of a command, or nothing if it fails or can't be run."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,  # noqa: UP021 - `text` is not known to Python 3.6
            check=False,
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _run(command: "list[str]", shown: "re.Pattern[str] | None" = None) -> None:
    """Run a command with its output in the log; lines that match `shown` are printed too.

    Raises:
        BootstrapError: It failed; the last lines of its output are in the message.
    """
    INSTALL_LOG.parent.mkdir(exist_ok=True)
    lines = []
    process = subprocess.Popen(
        command,
        cwd=str(ROOT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    assert process.stdout is not None
    with process, INSTALL_LOG.open("a") as log:
        log.write("$ {}\n".format(" ".join(command)))
        for line in process.stdout:
            log.write(line)
            lines.append(line)
            if shown and shown.match(line):
                _say("  " + line.rstrip()[:96])
    if process.returncode:
        tail = "".join(lines[-15:])
        raise BootstrapError(f"{' '.join(command)} failed (all of it is in {INSTALL_LOG}):\n{tail}")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
