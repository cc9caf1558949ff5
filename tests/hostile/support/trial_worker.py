"""A process that tries cases one after the other, and never outlives the limits of one.

`python trial_worker.py FIRST COUNT FOLDER` tells on its output, a line of JSON each, which case it
begins and how it ended. `python trial_worker.py CASE` tells a person all about one case.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from canaries import Canaries
from hostile_cases import Case, case_of
from hostile_records import arbiter_with, lease_with
from hostile_values import Surroundings
from log_mutations import LOG, Mutated
from seed_tables import SeedTable, seed_tables
from table_trial import Trial, lay_out
from trial_runner import place

__all__ = ["MEMORY_BYTES", "SECONDS", "WALL_SECONDS", "Workshop"]

MEMORY_BYTES = 1 << 30
SECONDS = 10
WALL_SECONDS = 3 * SECONDS
_OUTSIDE = "optimist.paths.outsideTable"


class Workshop:
    """Where cases are tried: a folder with the table, and one with what it must not reach."""

    def __init__(self, folder: Path) -> None:
        own = folder / "place"
        self._folder = own
        (own / "temporary").mkdir(parents=True)
        tempfile.tempdir = str(own / "temporary")
        self.canaries = Canaries(folder / "canaries", own=own)
        self._rows: dict[str, int] = {}
        self.around = Surroundings(str(own / "table"), self.canaries.folder, self.canaries.port)

    def limit(self) -> None:
        """After a first reading, so that what the engine needs anyway is not counted."""
        for path in (self.around.table, "memory://table"):
            seed = seed_tables()[0]
            lay_out(Mutated(dict(seed.files)), path)
            Trial(path, {}, seed.append).run()
        gc.freeze()  # what is there by now stays: no collection needs to go through it again
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        faulthandler.register(signal.SIGXCPU, chain=True)

    def try_case(self, case: Case) -> Trial:
        """Lay a table out and do everything with it."""
        expected = self._rows_of(case.seed) if case.table.is_redundant else None
        lay_out(case.table, case.path)
        trial = Trial(case.path, {_OUTSIDE: case.outside}, case.seed.append, expected)
        if case.record is not None:
            records = self._folder / "records"
            shutil.rmtree(records, ignore_errors=True)
            records.mkdir()
            trial.arbiter = arbiter_with(case.record, case.path, records)
            trial.lease = lease_with(case.record, self.around, records)
        self.canaries.noticed(may_be_read=False)
        with self.canaries.watching():
            trial.run()
        # In the log links are followed, as by every program; among the data they are judged.
        links = (name for name, kind in case.table.special.items() if "link" in kind)
        has_log_link = any(name.startswith(LOG) for name in links)
        may_be_read = case.path.startswith("/") and (case.outside != "never" or has_log_link)
        trial.faults += self.canaries.noticed(may_be_read=may_be_read)
        return trial

    def _rows_of(self, seed: SeedTable) -> int:
        """How many rows a table has that nobody has changed."""
        if seed.name not in self._rows:
            lay_out(Mutated(dict(seed.files)), self.around.table)
            log = Trial(self.around.table, {}, None).open()
            self._rows[seed.name] = log.to_arrow().num_rows
        return self._rows[seed.name]


def _begin() -> None:
    """A case may take so many seconds of the processors; waiting has a limit of its own."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS + 1, resource.RLIM_INFINITY))
    faulthandler.dump_traceback_later(WALL_SECONDS, exit=True)


def _work(first: int, count: int, folder: Path) -> None:
    told = os.fdopen(os.dup(1), "w", buffering=1)

    def tell(**what: Any) -> None:
        told.write(json.dumps(what) + "\n")

    workshop = Workshop(folder)
    workshop.limit()
    for number in range(first, first + count):
        tell(begins=number)
        _begin()
        case = case_of(number, workshop.around)
        trial = workshop.try_case(case)
        faulthandler.cancel_dump_traceback_later()
        faults = [f"{case.title}\n{fault}" for fault in trial.faults]
        tell(ended=number, faults=faults, read=sorted(trial.answers), refused=trial.refused)


def _explain(number: int) -> None:
    folder = Path(tempfile.mkdtemp(dir=place()))
    try:
        workshop = Workshop(folder)
        workshop.limit()
        case = case_of(number, workshop.around)
        sys.stdout.write(f"{case.title}\n")
        sys.stdout.flush()
        _begin()
        trial = workshop.try_case(case)
        for name, answer in trial.answers.items():
            sys.stdout.write(f"read     {name}: {answer!r:.200}\n")
        for name, kind in trial.refused.items():
            sys.stdout.write(f"refused  {name}: {kind}\n")
        for fault in trial.faults or ["none"]:
            sys.stdout.write(f"FAULT    {fault}\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        _explain(int(sys.argv[1]))
    else:
        _work(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
