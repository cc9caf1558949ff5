"""One change to a table: in a file, or of what files there are and how they are called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hostile_values import Chance, Surroundings, hostile_path, hostile_value, render
from json_mutations import mutated_json
from optimist.core.log.last_checkpoint import checksum_of
from parquet_mutations import flipped, mutated_parquet, truncated

__all__ = ["LOG", "Mutated", "mutate"]

LOG = "_delta_log/"


@dataclass
class Mutated:
    """A table's files while they are changed, and what was done to them.

    Attributes:
        files: The bytes by relative path.
        special: By relative path what is no file: `directory`, `pipe`, or `link:TARGET`.
        said: What was changed, in the order of the changes.
        is_redundant: Nothing but the hint and checksums was changed, of which no answer depends.
    """

    files: dict[str, bytes]
    special: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    is_redundant: bool = True


Step = Callable[[Mutated, Chance, Surroundings], str]


def mutate(table: Mutated, chance: Chance, around: Surroundings) -> None:
    """Change one thing."""
    step = chance.choices(_STEPS, _WEIGHTS)[0]
    if table.files:
        before = dict(table.files)
        try:
            table.said.append(step(table, chance, around))
        except RecursionError:
            table.said.append("nothing: what is there is too deep already")
        for name in table.files.keys() & table.special.keys():
            del table.special[name]  # the file came later, and took its place
        changed = {name for name, data in before.items() if table.files.get(name) is not data}
        is_redundant = all(re.search(_REDUNDANT, name) for name in changed)
        table.is_redundant &= is_redundant and before.keys() == table.files.keys()


def _pick(table: Mutated, chance: Chance, pattern: str) -> str | None:
    names = [name for name in table.files if re.search(pattern, name)]
    return chance.choice(names) if names else None


def _line(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """A place within one action of a commit, of compacted commits or of a checkpoint in JSON."""
    name = _pick(table, chance, r"_delta_log/.*\.json$")
    if name is None:
        return "nothing"
    lines = table.files[name].split(b"\n")
    places = [place for place, line in enumerate(lines) if line.strip()]
    if not places:
        return "nothing"
    place = chance.choice(places)
    try:
        action = json.loads(lines[place])
    except (ValueError, RecursionError):
        return "nothing"
    changed, said = mutated_json(action, chance, around)
    lines[place] = _bytes(render(changed))
    table.files[name] = b"\n".join(lines)
    return f"{name}, line {place}: {said}"


def _lines(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """Lines that are gone, doubled, swapped, torn, or new."""
    name = _pick(table, chance, r"_delta_log/.*\.json$")
    if name is None:
        return "nothing"
    lines = table.files[name].split(b"\n")
    place = chance.randrange(len(lines))
    doing = chance.choice(("drop", "double", "swap", "tear", "many", "insert", "insert", "insert"))
    said = doing
    if doing == "drop":
        del lines[place]
    elif doing == "double":
        lines.insert(place, lines[place])
    elif doing == "swap":
        other = chance.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    elif doing == "tear":
        lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)]
    elif doing == "many":
        lines[place:place] = [lines[place]] * chance.choice((10, 1000, 4000))
    else:
        line = _bytes(render(_new_action(chance, around)))
        lines.insert(place, line)
        said = f"insert {line[:200]!r}"
    table.files[name] = b"\n".join(lines)
    return f"{name}, line {place}: {said}"


def _new_action(chance: Chance, around: Surroundings) -> dict[str, Any]:
    number = hostile_value(chance, around, 1)
    text = hostile_value(chance, around, "")
    path = hostile_path(chance, around)
    vector = {
        "storageType": chance.choice(("p", "p", "u", "i", text)),
        "pathOrInlineDv": path,
        "offset": chance.choice((1, number)),
        "sizeInBytes": chance.choice((40, number)),
        "cardinality": chance.choice((1, number)),
    }
    add = {
        "path": path,
        "partitionValues": {"p": chance.choice((None, "a", text))},
        "size": chance.choice((100, 1 << 62, number)),
        "modificationTime": chance.choice((1, number)),
        "dataChange": True,
        "stats": chance.choice((None, '{"numRecords":1}', render({"numRecords": number}))),
    }
    protocol = {
        "minReaderVersion": chance.choice((1, 3, number)),
        "minWriterVersion": chance.choice((7, number)),
        "readerFeatures": [text],
        "writerFeatures": [text],
    }
    return chance.choice(
        (
            {"add": add},
            {"add": {**add, "path": "part-0.parquet", "deletionVector": vector}},
            {"add": {**add, "deletionVector": vector}},
            {"cdc": {**add, "dataChange": False}},
            {"remove": {**add, "deletionTimestamp": number}},
            {"txn": {"appId": text, "version": number, "lastUpdated": number}},
            {"protocol": protocol},
            {"domainMetadata": {"domain": text, "configuration": text, "removed": False}},
            {"commitInfo": {"timestamp": number, "inCommitTimestamp": number, "operation": text}},
            {"sidecar": {"path": path, "sizeInBytes": number, "modificationTime": number}},
            {"checkpointMetadata": {"version": number}},
            {str(text)[:1000]: number},
            {"metaData": number},
        )
    )


_REDUNDANT = r"_delta_log/(_last_checkpoint$|.*\.crc$)"


def _small_document(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """The hint or a checksum: another value in it, with a checksum of its own that fits or not."""
    name = _pick(table, chance, _REDUNDANT)
    if name is None:
        return _line(table, chance, around)
    try:
        changed, said = mutated_json(json.loads(table.files[name]), chance, around)
    except (ValueError, RecursionError):
        return "nothing"
    if isinstance(changed, dict) and "checksum" in changed and chance.random() < 0.7:
        changed.pop("checksum")
        text = render(changed)
        try:
            changed["checksum"] = checksum_of(text)
        except (ValueError, RecursionError):
            said += ", without checksum"
    table.files[name] = _bytes(render(changed))
    return f"{name}: {said}"


def _parquet(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """A checkpoint or a sidecar twice as often as a file of data."""
    pattern = chance.choice((r"_delta_log/.*\.parquet$", r"_delta_log/.*\.parquet$", r"\.parquet$"))
    name = _pick(table, chance, pattern) or _pick(table, chance, r"\.parquet$")
    if name is None:
        return "nothing"
    table.files[name], said = mutated_parquet(table.files[name], chance, around)
    return f"{name}: {said}"


def _vector(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """The bytes of a deletion vector, in its file or in the log."""
    name = _pick(table, chance, r"\.bin$")
    if name is not None and chance.random() < 0.5:
        mutation = chance.choice((flipped, flipped, truncated))
        table.files[name], said = mutation(table.files[name], chance, around)
        return f"{name}: {said}"
    for log in [name for name in table.files if name.endswith(".json")]:
        found = re.search(rb'"pathOrInlineDv":"([^"\\]{20,})"', table.files[log])
        if found is None:
            continue
        text = bytearray(found.group(1))
        place = chance.randrange(len(text))
        text[place] = chance.choice(b"0az.!%AZ")
        start, end = found.span(1)
        table.files[log] = table.files[log][:start] + bytes(text) + table.files[log][end:]
        return f"{log}: character {place} of a vector"
    return _line(table, chance, around)


def _bytes_of_any(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """Any file is cut or has a wrong bit."""
    name = chance.choice(sorted(table.files))
    mutation = chance.choice((flipped, truncated))
    table.files[name], said = mutation(table.files[name], chance, around)
    return f"{name}: {said}"


def _names(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """A file is gone, or there under another name too, or in the place of another."""
    name = chance.choice(sorted(table.files))
    doing = chance.choice(("drop", "copy", "copy", "move", "swap"))
    if doing == "drop":
        del table.files[name]
        return f"{name} is gone"
    if doing == "swap":
        other = chance.choice(sorted(table.files))
        table.files[name], table.files[other] = table.files[other], table.files[name]
        return f"{name} and {other} are swapped"
    other = LOG + _log_name(chance)
    table.files[other] = chance.choice((table.files[name], b"", b"junk", table.files[name]))
    if doing == "move":
        del table.files[name]
    return f"{name}: {doing} to {other}"


def _log_name(chance: Chance) -> str:
    version = chance.choice(
        ("0" * 20, f"{3:020}", f"{5:020}", f"{6:020}", "5", "05", "9" * 20, "9" * 19, "1" * 60)
    )
    return version + chance.choice(
        (
            ".json",
            ".json",
            ".crc",
            ".checkpoint.parquet",
            ".checkpoint.parquet",
            f".checkpoint.{1:010}.{2:010}.parquet",
            f".checkpoint.{1:010}.{10**9:010}.parquet",
            f".checkpoint.{0:010}.{0:010}.parquet",
            ".checkpoint.00000000-0000-4000-8000-000000000000.json",
            ".checkpoint.00000000-0000-4000-8000-000000000000.parquet",
            f".{6:020}.compacted.json",
            f".{'9' * 20}.compacted.json",
            ".json.tmp",
        )
    )


def _special(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """What is no file, in the place of one; on a disk only."""
    names = [*sorted(table.files), *(LOG + f"{version:020}.json" for version in (5, 8)), "pipe"]
    name = chance.choice(names)
    kind = chance.choice(
        (
            "directory",
            "pipe",
            "link:/nowhere/at/all",
            f"link:{name.rpartition('/')[2]}",
            "link:/dev/zero",
            f"link:{around.parquet}",
        )
    )
    table.files.pop(name, None)
    table.special[name] = kind
    return f"{name} is a {kind}"


def _bomb(table: Mutated, chance: Chance, around: Surroundings) -> str:
    """Much from little: very many actions of one kind, or a file that claims to be huge."""
    name = LOG + f"{chance.choice((1, 2, 5)):020}.json"
    count = chance.choice((1000, 4000))
    add = {
        "path": "f@",
        "partitionValues": {},
        "size": chance.choice((1, 1 << 40, (1 << 63) - 1)),
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps({"numRecords": chance.choice((1, (1 << 63) - 1, -5))}),
    }
    bodies = {
        "add": add,
        "remove": {**add, "deletionTimestamp": 1},
        "txn": {"appId": "a@", "version": 1},
        "domainMetadata": {"domain": "d@", "configuration": "x" * 100, "removed": False},
        "commitInfo": {"operation": "x@"},
        "unknown": {"x": 1},
    }
    key = chance.choice(sorted(bodies))
    text = render({key: bodies[key]})
    lines = (text.replace("@", str(number)) for number in range(count))
    table.files[name] = table.files.get(name, b"") + b"\n" + "\n".join(lines).encode()
    return f"{name}: {count} lines like {text[:150]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_STEPS: tuple[Step, ...] = (
    _line,
    _lines,
    _small_document,
    _parquet,
    _vector,
    _bytes_of_any,
    _names,
    _special,
    _bomb,
)
_WEIGHTS = (40, 12, 8, 20, 5, 4, 8, 3, 1)
