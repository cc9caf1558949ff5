"""`Sample`: the data files that a deep check reads if it shall not read all of them.

The same seed chooses the same files of a version, on any machine. A repair checks twice, and both
checks read the same files, so its answer tells what is left of what it has found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import whole_number, wrong_type
from optimist.core.errors.foreign_text import quoted
from optimist.core.runtime.clock import Clock

__all__ = ["Sample"]

_SIZE = re.compile(r"(?P<number>[0-9]{1,18})|(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?) ?%", re.ASCII)
_SEEDS = 1_000_000
"""How many seeds a check chooses from by itself: few digits are easy to type again."""


@dataclass(slots=True)
class Sample:
    """A part of a version's data files, chosen at random. For one check or repair.

    Attributes:
        size: The number of files; or their share of all files, a fraction of at most 1.
        seed: Decides which ones.
    """

    size: int | Fraction
    seed: int
    _chosen: pa.Array | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, size: object, seed: object, clock: Clock) -> Sample:
        """Make a sample as a caller asks for it.

        Args:
            size: A number of files, or a text with a number or a percentage, such as "1%".
            seed: A whole number, at least 0; None chooses one.
            clock: The source of randomness.

        Raises:
            UsageError: One of them is no such value (kind `OPTIMIST_INVALID_ARGUMENT` or
                `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        """
        chosen = int(clock.uniform(0, _SEEDS)) if seed is None else seed
        return cls(_parsed(size), whole_number(chosen, "seed", least=0))

    def among(self, files: pa.Table) -> pa.Table:
        """Return the files of the sample. At the first call they are chosen, at least one."""
        if self._chosen is None:
            self._chosen = self._choose(files.column("path"))
        return files.filter(pc.is_in(files.column("path"), value_set=self._chosen))

    def _choose(self, paths: pa.ChunkedArray) -> pa.Array:
        count = self.size if isinstance(self.size, int) else -(-len(paths) * self.size // 1)
        # These bits are the same with every version of NumPy, which `shuffle` does not promise.
        keys = np.random.PCG64(self.seed).random_raw(len(paths))
        first = np.sort(np.argsort(keys, kind="stable")[: int(count)])
        order = pc.sort_indices(paths)
        return paths.take(order.take(pa.array(first))).combine_chunks()


def _parsed(size: object) -> int | Fraction:
    if not isinstance(size, str):
        if isinstance(size, float):
            raise wrong_type("sample", size, 'a number of files, or a percentage such as "1%"')
        return whole_number(size, "sample", least=1)
    found = _SIZE.fullmatch(size.strip())
    if found is not None and found["number"] is not None and int(found["number"]):
        return int(found["number"])
    if found is not None and found["percent"] is not None:
        share = Fraction(found["percent"]) / 100
        if 0 < share <= 1:
            return share
    raise UsageError(
        f"A sample of {quoted(size)} files can't be taken. Nothing was done. Give a number of "
        "files, such as 500, or a percentage of them, such as 1%.",
        kind="OPTIMIST_INVALID_ARGUMENT",
        argument="sample",
    )
