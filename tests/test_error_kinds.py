"""A kind of error belongs to one class: in the table, in the code, and in docs/errors.md.

What can't be told from the code is seen where it runs: `tests/conftest.py` looks at each error that
a test has made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from optimist.core import errors
from optimist.core.errors import OptimistError
from optimist.core.errors import kinds as error_kinds
from optimist.core.errors.kinds import CLASS_OF_KIND

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    name
    for name in ("cli", "core", "deltalake_api", "locks", "logstores", "spark")
    if (ROOT / name).is_dir()
]
CLASSES = {
    name: item
    for name, item in vars(errors).items()
    if isinstance(item, type) and issubclass(item, OptimistError)
}
CLASS_OF_SECTION: dict[str, type[OptimistError]] = {
    "Conflicts": errors.DeltaConcurrentModificationException,
    "Open outcomes": errors.CommitOutcomeUnknownError,
    "Too many writers": errors.MaxCommitAttemptsExceededError,
    "After the commit": errors.PostCommitHookError,
    "Storage": errors.StorageError,
    "Protocol": errors.ProtocolError,
    "Configuration": errors.ConfigError,
    "Schema and data": errors.SchemaError,
    "The call": errors.UsageError,
    "The table": errors.TableError,
}

NOT_KINDS = {
    "OPTIMIST_ROW_CHECK",  # a marker that Spark's message carries to us
    *("OPTIMIST_CONF", "OPTIMIST_CONF_FILE"),  # variables of the environment
}


def product() -> Iterator[tuple[Path, ast.Module]]:
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        if "testing" not in path.parts and path.name != "error_kinds.py":
            yield path, ast.parse(path.read_text(encoding="utf-8"))


NAMED = {
    name: value
    for name, value in vars(error_kinds).items()
    if name.isupper() and isinstance(value, str)
}
"""The kinds that have a name in `error_kinds`, by that name."""


def texts(node: ast.AST) -> set[str]:
    """The texts in a piece of code, and the kinds that it names."""
    leaves = list(ast.walk(node))
    named = {NAMED.get(leaf.id) for leaf in leaves if isinstance(leaf, ast.Name)}
    written = {leaf.value for leaf in leaves if isinstance(leaf, ast.Constant)}
    return {text for text in named | written if isinstance(text, str)}


def kinds_in_the_code() -> set[str]:
    """Every `kind` of the product: what is passed as one, and what is named like one."""
    found = set()
    for _, tree in product():
        written = texts(tree)
        found |= written & set(CLASS_OF_KIND)
        found |= {text for text in written if re.match("(DELTA|OPTIMIST)_", text)}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "kind":
                found |= texts(node.value)
    shaped = {kind for kind in found if re.fullmatch(r"[A-Z][A-Z0-9_]{4,}(?<!_)(?<!_PREFIX)", kind)}
    return shaped - NOT_KINDS


@cache
def explained() -> dict[str, tuple[str, str]]:
    """Each kind of docs/errors.md: the heading above its row, and the row."""
    found: dict[str, tuple[str, str]] = {}
    heading = ""
    for line in (ROOT / "docs/errors.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        match = re.match(r"\| (?:`\w+` \| )?`([A-Z][A-Z0-9_]+)` \|", line)
        if match:
            assert match[1] not in found, f"docs/errors.md has two rows for {match[1]}"
            found[match[1]] = heading, line
    return found


def test_every_kind_of_the_code_has_a_class_and_every_kind_with_a_class_is_in_the_code() -> None:
    assert sorted(kinds_in_the_code() ^ set(CLASS_OF_KIND)) == []


def test_a_kind_by_which_code_decides_is_asked_for_by_its_name() -> None:
    literal = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in product()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Constant) and leaf.value in CLASS_OF_KIND
    ]
    assert literal == []


def test_no_code_gives_a_kind_to_another_class() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {name} of kind {kind}"
        for path, tree in product()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := getattr(node.func, "id", "")) in CLASSES
        for keyword in node.keywords
        if keyword.arg == "kind"
        for kind in texts(keyword.value)
        if CLASS_OF_KIND.get(kind, CLASSES[name]) is not CLASSES[name]
    ]
    assert wrong == []


def test_every_kind_is_explained_once_and_no_other_is() -> None:
    assert sorted(set(explained()) ^ set(CLASS_OF_KIND)) == []


@pytest.mark.parametrize("kind", CLASS_OF_KIND)
def test_a_kind_is_explained_under_its_class(kind: str) -> None:
    heading, row = explained()[kind]
    known = CLASS_OF_KIND[kind]
    main = next(cls for cls in known.__mro__ if cls in CLASS_OF_SECTION.values())
    assert CLASS_OF_SECTION[heading] is main
    named = set(re.findall(r"`(\w+)`", row)) & set(CLASSES) - {
        errors.CommitOutcomeUnknownError.__name__
    }
    assert named == ({known.__name__} if known is not main else set())
