"""Arithmetic on decimals that loses no digit, whatever decimal context the thread has.

Python rounds the result of every operator (`+`, `-`, `abs`, even the unary minus) to the thread's
context: to 28 digits, or to what the caller's program has set. A decimal of Delta has up to 38. So
these functions use their own context, and elsewhere decimals are only made, compared and printed,
which never rounds. The type checker enforces this: in `typings/decimal.pyi`, decimals have no
operators.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

__all__ = [
    "ceil_to_scale",
    "exactly_at_scale",
    "floor_to_scale",
    "is_in_range",
    "largest",
    "spread",
]


def _context(rounding: str) -> Context:
    # Every argument is given: one left out is taken from a default that any program may change.
    return Context(
        prec=200,  # more than any product or sum of two decimals of Delta has
        rounding=rounding,
        Emin=-999_999,
        Emax=999_999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation],
    )


_EXACT = _context(ROUND_HALF_EVEN)
_DOWN = _context(ROUND_FLOOR)
_UP = _context(ROUND_CEILING)


def is_in_range(number: Decimal, precision: int, scale: int) -> bool:
    """Whether `decimal(precision, scale)` has room for the number's digits before the point."""
    return number.copy_abs() < _power_of_ten(precision - scale)


def largest(precision: int, scale: int) -> Decimal:
    """The largest number that `decimal(precision, scale)` holds."""
    return Decimal((0, (9,) * precision, -scale))


def floor_to_scale(number: Decimal, scale: int) -> Decimal:
    """The greatest number with `scale` digits after the point that is not above `number`."""
    return _DOWN.quantize(number, _power_of_ten(-scale))


def ceil_to_scale(number: Decimal, scale: int) -> Decimal:
    """The least number with `scale` digits after the point that is not below `number`."""
    return _UP.quantize(number, _power_of_ten(-scale))


def exactly_at_scale(number: Decimal, scale: int) -> Decimal:
    """The same number with exactly `scale` digits after the point.

    Raises:
        decimal.InvalidOperation: It needs more digits than that, or is not finite.
    """
    fitted = _EXACT.quantize(number, _power_of_ten(-scale))
    if fitted != number:
        raise InvalidOperation(number)
    return fitted


def spread(number: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """The number moved down and up by the most that rounding to `digits` digits can change it."""
    margin = _EXACT.multiply(number.copy_abs(), _power_of_ten(1 - digits))
    return _EXACT.subtract(number, margin), _EXACT.add(number, margin)


def _power_of_ten(exponent: int) -> Decimal:
    return Decimal((0, (1,), exponent))
