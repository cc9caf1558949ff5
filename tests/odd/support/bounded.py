"""Runs a few lines of Python in a process of their own that may use little memory and time."""

import subprocess
import sys
import textwrap

_LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_AS, ({0}, {0}))\n"


def run_bounded(code, *arguments, memory_mb=3_000, timeout_s=120):
    """What the code prints.

    Args:
        code: Python, told its arguments by `sys.argv`; an error of it fails the test.
        arguments: Texts.
        memory_mb: The address space, of which a bare import of Arrow takes about 1,500.
        timeout_s: Many times what the code needs: it stands against a hang.
    """
    limit = _LIMIT.format(memory_mb << 20)
    done = subprocess.run(
        [sys.executable, "-c", limit + textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout
