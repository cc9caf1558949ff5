"""Digests of texts and bytes, and bytes as texts: `sha2`, `md5`, `hex`, `base64` and their like."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.functions.value import (
    STRING,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.schema.types import PrimitiveType

__all__ = ["as_base64", "by_bytes", "crc32", "hexed", "md5", "sha1", "sha2", "unbased", "unhexed"]

_BINARY, _LONG = PrimitiveType("binary"), PrimitiveType("long")
_OF_BITS = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256}
_OF_BITS |= {384: hashlib.sha384, 512: hashlib.sha512}
_LINE = 57
"""The most bytes that fill one line of Base64."""
_HEX_DIGITS = r"^[0-9a-fA-F]*$"
_BASE64 = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?\z"
_ENDS_OF_LINES = r"([A-Za-z0-9+/])\r?\n"
"""Spark reads over them, as over all that is no digit of Base64."""


def md5(data: bytes) -> str:
    """Return the MD5 of some bytes in hexadecimal digits."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def sha1(data: bytes) -> str:
    """Return the SHA-1 of some bytes in hexadecimal digits."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def by_bytes(function: Callable[[bytes], str], given: Arguments) -> Value | None:
    """Return a text for the bytes of each text or binary value."""
    if given.types[0] not in (STRING, _BINARY):
        return None
    return computed(STRING, given.values[:1], lambda values: _each(function, values, pa.string()))


def _each(function: Callable[[bytes], Any], values: Array, kind: pa.DataType) -> pa.Array:
    """Call a function for each value once; Arrow has no function for it."""
    coded = one_array(values).cast(pa.binary()).dictionary_encode()
    found = pa.array([function(item.as_buffer()) for item in coded.dictionary], kind)
    return found.take(coded.indices)


def as_base64(given: Arguments) -> Value | None:
    """Return short bytes in Base64; versions of Spark cut longer ones into lines or do not."""
    if given.types[0] not in (STRING, _BINARY):
        return None

    def kernel(values: Array) -> Array:
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > _LINE:
            what = f"more than {_LINE} bytes, which versions of Spark write differently"
            raise _needs_spark(given.text, what)
        return _each(lambda data: base64.b64encode(data).decode("ascii"), values, pa.string())

    return computed(STRING, given.values, kernel)


def unbased(given: Arguments) -> Value | None:
    """Return the bytes of a text in Base64, with or without `=` at its end and ends of lines."""
    if given.types[0] != STRING:
        return None

    def read(data: bytes) -> bytes:
        return base64.b64decode(bytes(data) + b"=" * (-len(data) % 4))

    def kernel(values: Array) -> Array:
        digits = pc.replace_substring_regex(values, _ENDS_OF_LINES, r"\1")
        is_base64 = pc.match_substring_regex(digits, _BASE64)
        if not pc.all(is_base64, min_count=0).as_py():
            raise _needs_spark(given.text, "texts that are no Base64, which Java may read")
        return _each(read, digits, pa.binary())

    return computed(_BINARY, given.values, kernel)


def _needs_spark(text: str, what: str) -> UsageError:
    return UsageError(
        f"The expression {quoted(text)} meets {what}. Nothing was changed. Use optimist.spark, or "
        "leave out such rows.",
        kind="OPTIMIST_NEEDS_SPARK",
        value=text,
    )


def crc32(given: Arguments) -> Value | None:
    """Return the CRC-32 of the bytes of a text or a binary value."""
    if given.types[0] not in (STRING, _BINARY):
        return None
    return computed(_LONG, given.values, lambda values: _each(zlib.crc32, values, pa.int64()))


def sha2(given: Arguments) -> Value | None:
    """Return a digest of the SHA-2 family, whose number of bits is a constant."""
    literal = given.values[1].literal
    bits = None if literal is None else literal.value
    algorithm = _OF_BITS.get(bits) if isinstance(bits, int) else None
    if algorithm is None:
        return None
    chosen = algorithm
    return by_bytes(lambda data: chosen(data).hexdigest(), given)


def hexed(given: Arguments) -> Value | None:
    """Return the hexadecimal digits of bytes, in capitals, or of a whole number without zeros."""
    if given.types[0] in (STRING, _BINARY):
        return by_bytes(lambda data: binascii.hexlify(data).decode("ascii").upper(), given)
    if str(given.types[0]) not in ("byte", "short", "integer", "long"):
        return None

    def kernel(values: Array) -> Array:
        wide = one_array(values).cast(pa.int64()).dictionary_encode()
        texts = [f"{item.as_py() & 0xFFFFFFFFFFFFFFFF:X}" for item in wide.dictionary]
        return pa.array(texts, pa.string()).take(wide.indices)

    return computed(STRING, given.values, kernel)


def unhexed(given: Arguments) -> Value | None:
    """Return the bytes of hexadecimal digits, and null for another text."""
    if given.types[0] != STRING:
        return None

    def read(data: bytes) -> bytes:
        digits = bytes(data).decode("ascii")
        return binascii.unhexlify("0" * (len(digits) % 2) + digits)

    def kernel(values: Array) -> Array:
        is_hex = pc.match_substring_regex(values, _HEX_DIGITS)
        kept = pc.if_else(pc.fill_null(is_hex, False), values, pa.scalar(None, pa.string()))
        return _each(read, kept, pa.binary())

    return computed(_BINARY, given.values, kernel)
