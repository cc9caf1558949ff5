"""Arithmetic on decimals that loses no digit, in every decimal context of the thread.

Python rounds the result of every operator (`+`, `-`, `abs`, even the unary minus) to the thread's
context: to 28 digits, or to another number that the caller's program set. A decimal of Delta has up
to 38. So these functions use their own context. All other code only makes, compares and prints
decimals, which never rounds. The type checker enforces this: in `typings/decimal.pyi`, decimals
have no operators.
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
    # Give every argument: the defaults of the others may be changed by any program.
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
    """Return whether the number's whole part fits `decimal(precision, scale)`."""
    return number.copy_abs() < _power_of_ten(precision - scale)


def largest(precision: int, scale: int) -> Decimal:
    """Return the largest number that `decimal(precision, scale)` holds."""
    return Decimal((0, (9,) * precision, -scale))


def floor_to_scale(number: Decimal, scale: int) -> Decimal:
    """Return the greatest number with `scale` digits after the point, at most `number`."""
    return _DOWN.quantize(number, _power_of_ten(-scale))


def ceil_to_scale(number: Decimal, scale: int) -> Decimal:
    """Return the least number with `scale` digits after the point, at least `number`."""
    return _UP.quantize(number, _power_of_ten(-scale))


def exactly_at_scale(number: Decimal, scale: int) -> Decimal:
    """Return the same number with exactly `scale` digits after the point.

    Raises:
        decimal.InvalidOperation: The number needs more digits than that, or is not finite.
    """
    fitted = _EXACT.quantize(number, _power_of_ten(-scale))
    if fitted != number:
        raise InvalidOperation(number)
    return fitted


def spread(number: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Return the number minus and plus the largest error of rounding it to `digits` digits."""
    margin = _EXACT.multiply(number.copy_abs(), _power_of_ten(1 - digits))
    return _EXACT.subtract(number, margin), _EXACT.add(number, margin)


def _power_of_ten(exponent: int) -> Decimal:
    return Decimal((0, (1,), exponent))
