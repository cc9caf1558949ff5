"""Bring emulators of storage services up on 127.0.0.1, without Docker.

`python3 localstack/up.py` brings up all of them, `up.py s3 redis` some. What is missing is
installed, once, into `localstack/.servers`. `up.py --stop [names]` or `down.py` stops them.
`build/localstack/state.json` tells the address and the process of each; logs are beside it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import places
from bringing_up import bring_down, bring_up, is_installed, is_up
from emulator import Emulator
from installing import CANCELLED, SetupError
from roster import ROSTER
from state import only_one_runner, read_state

__all__ = ["main"]

# Installing is mostly waiting for the network, unpacking and compiling: more at a time only get in
# each other's way.
_AT_ONCE = 3
_NAME_WIDTH = max(len(name) for name in ROSTER)
_say_lock = threading.Lock()


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks; 0 if every server that was asked for is up, or stopped."""
    options = _parse(arguments)
    names = options.names or list(ROSTER)
    if options.list:
        return _tell(names)
    # Without waiting for another run that may be installing something else.
    if not options.stop and all(is_up(ROSTER[name]) for name in names):
        return _start(names, may_install=False)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with only_one_runner(_say):
            return _stop(names) if options.stop else _start(names, may_install=options.install)
    except KeyboardInterrupt:
        _say("cancelled; what is up stays up (localstack/down.py stops it)")
        return 130
    except TimeoutError as error:
        _say(str(error))
        return 1


def _start(names: Sequence[str], *, may_install: bool) -> int:
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="bring-up")
    ordered = [ROSTER[name] for name in ROSTER if name in names]
    futures = [pool.submit(_bring_up, emulator, may_install) for emulator in ordered]
    try:
        done = [future.result() for future in futures]
    except BaseException:
        CANCELLED.set()  # the threads see it and end what they started
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return 0 if all(done) else 1


def _bring_up(emulator: Emulator, may_install: bool) -> bool:
    """Bring one up and say how it went, on one line."""
    began = time.monotonic()
    if is_up(emulator):
        _report(emulator, f"is up at {read_state()[emulator.name].endpoint}")
        return True
    if may_install and not is_installed(emulator):
        minutes = emulator.install_limit_s // 60
        _report(emulator, f"installing {emulator.title} {emulator.version} (at most {minutes} min)")
    try:
        running = bring_up(emulator, may_install=may_install)
    except (SetupError, OSError) as error:
        _report(emulator, f"NOT UP: {error}")
        return False
    _report(emulator, f"is up at {running.endpoint} ({time.monotonic() - began:.1f} s)")
    return True


def _stop(names: Sequence[str]) -> int:
    for name in names:
        if bring_down(name):
            _report(ROSTER[name], "stopped")
    return 0


def _tell(names: Sequence[str]) -> int:
    state = read_state()
    for name in names:
        emulator = ROSTER[name]
        where = state[name].endpoint if is_up(emulator) else "not up"
        how = "installed" if is_installed(emulator) else "not installed"
        _report(emulator, f"{emulator.title} {emulator.version}, {how}, {where}")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Emulators of storage services on 127.0.0.1, without Docker.",
        epilog=f"State: {places.STATE}. Logs: {places.LOGS}. Servers: {places.SERVERS}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROSTER)}")
    parser.add_argument("--stop", action="store_true", help="stop them")
    parser.add_argument("--list", action="store_true", help="tell versions and what is up")
    parser.add_argument(
        "--no-install",
        dest="install",
        action="store_false",
        help="start what is installed; fail at once for the rest",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in ROSTER]
    if unknown:
        parser.error(f"no emulator {', '.join(unknown)}; there are {', '.join(ROSTER)}")
    return options


def _report(emulator: Emulator, text: str) -> None:
    _say(f"{emulator.name:<{_NAME_WIDTH}}  {text}")


def _say(text: str) -> None:
    with _say_lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
