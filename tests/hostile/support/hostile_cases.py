"""Case number N: which table, what is wrong with it, and where it lies. The same at each run."""

from __future__ import annotations

from dataclasses import dataclass

from hostile_records import STAGED, Record, record_of
from hostile_values import Chance, Surroundings
from log_mutations import Mutated, mutate
from seed_tables import SeedTable, real_tables, seed_tables

__all__ = ["Case", "case_of"]

_WITH_RECORD = 20
_MUTATIONS = (1, 1, 1, 1, 2, 2, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """One hostile table.

    Attributes:
        number: Of the case.
        seed: What it was before.
        table: What it is now.
        path: Where it is laid out.
        outside: The option `optimist.paths.outsideTable`.
        record: What stands in an arbiter's database, for tables that have an arbiter.
    """

    number: int
    seed: SeedTable
    table: Mutated
    path: str
    outside: str
    record: Record | None = None

    @property
    def title(self) -> str:
        """What one needs to see to understand a fault."""
        steps = [*self.table.said, *([self.record.said] if self.record else [])]
        said = "\n  ".join(steps)
        return f"CASE={self.number}, the table {self.seed.name!r} at {self.path}:\n  {said}"


def case_of(number: int, around: Surroundings) -> Case:
    """The case of a number."""
    chance = Chance(number)
    tables = seed_tables()
    if number % 8 == 7:
        tables = real_tables() or tables
    seed = chance.choice(tables)
    is_local = number % _WITH_RECORD == 1 or chance.random() < 0.75
    table = Mutated(dict(seed.files))
    record = record_of(chance, around) if number % _WITH_RECORD == 1 else None
    if record is not None:
        table.files[STAGED] = b'{"commitInfo":{"operation":"STAGED"}}\n'
    for _ in range(chance.choice(_MUTATIONS) if record is None else chance.choice((0, 0, 1))):
        mutate(table, chance, around)
    path = around.table if is_local else "memory://table"
    if not is_local:
        table.special.clear()
    outside = chance.choice(("never", "never", "same-store"))
    return Case(number, seed, table, path, outside, record)
