"""Installing into a folder of one's own: once, at low priority, within a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import stop_group

__all__ = ["CANCELLED", "Installation", "SetupError", "find_java", "find_tool"]

# Set when the user gives up; every running installation ends soon after.
CANCELLED = threading.Event()

_PAUSE_S = 0.2
_LINES_SHOWN = 6


class SetupError(Exception):
    """A server could not be set up; the message says why, and what to do, on one line."""


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation under way.

    Attributes:
        home: The folder to install into; it exists.
        log: Where the output of every command goes.
        deadline: When to give up, on `time.monotonic`.
    """

    home: Path
    log: Path
    deadline: float

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Run one command in the folder, at low priority.

        Raises:
            SetupError: It failed, ran past the deadline, or the user gave up.
        """
        with self.log.open("a") as output:
            output.write(f"$ {' '.join(command)}\n")
            output.flush()
            process = subprocess.Popen(
                ["nice", "-n", "10", *command],
                cwd=self.home,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._wait(process)
        if process.returncode:
            raise SetupError(f"{command[0]} failed: {self._last_words()} (all of it: {self.log})")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            if CANCELLED.wait(_PAUSE_S):
                stop_group(process.pid, grace_s=2)
                raise SetupError("cancelled")
            if time.monotonic() > self.deadline:
                stop_group(process.pid, grace_s=2)
                raise SetupError(f"the installation took too long and was ended (see {self.log})")

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        return " | ".join([line for line in lines if line][-_LINES_SHOWN:])[-400:]


def find_tool(name: str, advice: str) -> str:
    """Find the path of a program.

    Raises:
        SetupError: It is not on PATH; the message ends with the advice.
    """
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"needs `{name}`, which is not on PATH: {advice}")
    return found


def find_java(root: Path) -> str:
    """Find `java` by JAVA_HOME, else by bootstrap.py, else on PATH."""
    remembered = root / ".venv" / "java-home"
    homes = [os.environ.get("JAVA_HOME", "")]
    if remembered.exists():
        homes.append(remembered.read_text().strip())
    for home in homes:
        if home and Path(home, "bin", "java").exists():
            return str(Path(home, "bin", "java"))
    return find_tool("java", "install a Java 17, or set JAVA_HOME")
