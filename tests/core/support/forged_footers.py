"""Parquet files whose footers say what no writer writes, made by changing their bytes."""

import struct

__all__ = ["with_a_key", "with_footer", "with_short_bounds"]

KEY = b"\x5c\x2c\x19\x18\x01a\x00\x00"  # field 8: a key of the column "a"


def with_footer(data, change):
    """The file with the footer that `change` makes of its own."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = change(data[-8 - length : -8])
    return data[: -8 - length] + footer + struct.pack("<I", len(footer)) + data[-4:]


def with_short_bounds(data, bound):
    """The file, in whose statistics these bounds have one byte."""

    def change(footer):
        assert bytes([len(bound)]) + bound in footer
        return footer.replace(bytes([len(bound)]) + bound, b"\x01" + bound[:1])

    return with_footer(data, change)


def with_a_key(data):
    """The file with its first column chunk marked as encrypted. It ends before the second one."""

    def change(footer):
        end = footer.index(b"\x00\x00\x26", footer.index(b"\x16", footer.index(b"\x19\x18")))
        return footer[: end + 1] + KEY + footer[end + 1 :]

    return with_footer(data, change)
