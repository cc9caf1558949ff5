"""Values that no honest writer puts into a log, and JSON text that Python's own writer can't spell.

A `Raw` is rendered as it stands, so that `1e999999`, `NaN` and doubled keys come about.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - a case is its number: the same chance each time it is run
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Chance", "Raw", "Surroundings", "hostile_path", "hostile_value", "render"]

Chance = random.Random
ENVIRONMENT_CANARY = "OPTIMIST_CANARY"

_LONG = 100_000


class Raw(str):
    """A piece of JSON text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a table may name and must never reach, and where the table itself is."""

    table: str
    canaries: Path
    port: int

    @property
    def parquet(self) -> Path:
        """A sound data file that is none of the table's."""
        return self.canaries / "canary.parquet"

    @property
    def text(self) -> Path:
        """A file with a secret."""
        return self.canaries / "canary.txt"

    @property
    def references(self) -> Path:
        """References of fsspec whose template runs a command."""
        return self.canaries / "references.json"


INTEGERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    7,
    (1 << 31) - 1,
    1 << 31,
    (1 << 53) + 1,
    (1 << 63) - 1,
    1 << 63,
    -(1 << 63),
    -(1 << 63) - 1,
    1 << 64,
    1 << 70,
    10**30,
    True,
    Raw("1e999999"),
    Raw("-1e999999"),
    Raw("1e-999999"),
    Raw("1e400"),
    Raw("1e18"),
    Raw("0.1e-99999999999"),
    Raw("1.0"),
    Raw("-0"),
    Raw("0.5"),
    Raw("NaN"),
    Raw("-Infinity"),
    Raw("9" * 4000),
    Raw("9" * 5000),
)
TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\0",
    "a\0b",
    "..",
    ".",
    "/",
    "%",
    "%00",
    "%2F",
    "\ud800",
    "\udfff x",
    "\u202egnp",
    "é" * 300,
    "a" * _LONG,
    "\n",
    "\r\n{}",
    "\x1b[2J\x07",
    "{}",
    "[]",
    "null",
    '{"a":' * 500,
    "[" * 20_000,
    "$HOME",
    "${OPTIMIST_CANARY}",
    "~",
    "1e999999",
    "-1e999999",
    "1e-999999",
    "9" * 5000,
    "-" + "9" * 400,
    "0." + "0" * 5000 + "1",
    "NaN",
    "inf",
    "true",
    "0000-00-00",
    "9999999-12-31",
    "-0001-01-01",
    "2020-13-45 99:99:99",
    "292278994-08-17T07:12:55.807Z",
    "2020-01-01T00:00:00.000000+99:99",
    "interval 99999999999999999999 weeks",
    "interval " + "9" * 5000 + " days",
    "decimal(99,5)",
    "decimal(38,-5)",
    "decimal(99999999999999999999,1)",
    "decimal(10,11)",
    "array<int>",
    "void",
    "variant",
    "char(99999999999999)",
    "timestamp_ntz",
    "interval day to second",
    "binary",
    "long",
    "string",
    "double",
    "name",
    "id",
    "part-0.parquet",
    "_delta_log",
    "v2Checkpoint",
    "deletionVectors",
    "columnMapping",
    "catalogManaged",
    "i",
    "p",
    "u",
)
OTHERS: tuple[Any, ...] = (
    None,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"add": {}},
    {"path": {"path": {}}},
    Raw("[" * 300 + "]" * 300),
    Raw("[" * 900 + "]" * 900),
    Raw("[" * 20_000 + "]" * 20_000),
    Raw('{"a":' * 600 + "1" + "}" * 600),
    Raw('{"a":' * 20_000 + "1" + "}" * 20_000),
    Raw("[" + "0," * _LONG + "0]"),
    Raw("{" + ",".join(f'"k{n}":{n}' for n in range(10_000)) + "}"),
    Raw("{"),
    Raw(""),
    Raw("'x'"),
    Raw('"\\ud800"'),
    Raw('"\\u0000"'),
    Raw("tru"),
)


def hostile_path(chance: Chance, around: Surroundings) -> str:
    """A reference to a file, mostly to one that is not the table's."""
    host = f"127.0.0.1:{around.port}"
    depth = "../" * chance.randint(1, 8)
    inside = str(around.parquet).lstrip("/")
    table = around.table.rstrip("/")
    choices = (
        str(around.parquet),
        f"file://{around.parquet}",
        f"file:{around.parquet}",
        f"FILE://localhost{around.parquet}",
        f"{depth}{inside}",
        f"../{around.canaries.name}/{around.parquet.name}",
        f"%2e%2e/{around.canaries.name}/{around.parquet.name}",
        f"x/../../{around.canaries.name}/{around.parquet.name}",
        f"/{around.parquet}",
        f"%2F{inside}",
        f"{around.text}",
        f"reference://k::file://{around.references}",
        f"reference://k::{around.references}",
        f"simplecache::file://{around.parquet}",
        f"filecache::http://{host}/x.parquet",
        f"zip://x::http://{host}/x.zip",
        f"local://{around.parquet}",
        f"asynclocal://{around.parquet}",
        f"dir://x::{around.parquet}",
        f"http://{host}/x.parquet",
        f"http%3A//{host}/x.parquet",
        f"https://{host}/x.parquet",
        f"ftp://user:password@{host}/x.parquet",
        f"sftp://{host}/x.parquet",
        f"smb://{host}/share/x.parquet",
        f"webhdfs://{host}/x.parquet",
        f"hdfs://{host}/x.parquet",
        f"jupyter://{host}/x.parquet",
        f"github://a:b@{host}/x.parquet",
        f"git://x:y@{around.canaries}/x",
        f"s3://{host}/x.parquet",
        f"s3://bucket/x.parquet?endpoint_override={host}&scheme=http",
        f"s3a://key:secret@{host}/x.parquet",
        f"gs://bucket/x.parquet?endpoint_override={host}",
        f"abfss://c@account.dfs.core.windows.net/x.parquet?host={host}",
        "data:application/octet-stream;base64,UEFSMQ==",
        "memory://elsewhere/x.parquet",
        "memory:/table/part-0.parquet",
        f"{table}/part-0.parquet",
        "./part-0.parquet",
        "part-0.parquet",
        "x//part-0.parquet",
        "part%2D0.parquet",
        "part-0.parquet%00",
        "_delta_log/00000000000000000000.json",
        "_delta_log",
        "",
        ".",
        "..",
        "/",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/environ",
        "/proc/self/mem",
        "pipe",
        "a" * 5000,
        "a/" * 2000 + "x",
        "::",
        "a::b",
        "://",
        ":",
        "\0",
        "\ud800",
        "nul\0l.parquet",
        "x\ny.parquet",
    )
    return chance.choice(choices)


def hostile_value(chance: Chance, around: Surroundings, like: object, key: str = "") -> Any:
    """A value for a place that held another; mostly of the same type, and then worse."""
    named = key.lower()
    is_path = "path" in named or (isinstance(like, str) and like.endswith((".parquet", ".bin")))
    draw = chance.random()
    if is_path and draw < 0.7:
        return hostile_path(chance, around)
    if draw < 0.65 and isinstance(like, int | float):
        return chance.choice(INTEGERS)
    if draw < 0.65 and isinstance(like, str):
        return chance.choice(TEXTS)
    pool = chance.choice((INTEGERS, TEXTS, OTHERS))
    return hostile_path(chance, around) if draw > 0.95 else chance.choice(pool)


def render(value: object) -> str:
    """The JSON text of a value, with each `Raw` in it as it stands."""
    raws: list[str] = []

    def marked(item: object) -> object:
        if isinstance(item, Raw):
            raws.append(str(item))
            return f"@raw{len(raws) - 1}@"
        if isinstance(item, dict):
            return {name: marked(each) for name, each in item.items()}
        if isinstance(item, list | tuple):
            return [marked(each) for each in item]
        return item

    text = json.dumps(marked(value), separators=(",", ":"), default=str)
    for number, raw in enumerate(raws):
        text = text.replace(f'"@raw{number}@"', raw, 1)
    return text
