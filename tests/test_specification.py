"""The specification, `docs/spec`: whatever refers to a rule finds it there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sample(1)

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "spec"
CHAPTERS = sorted(SPEC.glob("[0-9][0-9]-*.md"))
PLACES = (
    "cli",
    "core",
    "deltalake_api",
    "locks",
    "logstores",
    "spark",
    "tests",
    "integration",
    "examples",
    "docs",
)

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")
GLUE = re.compile(r"(?:,|;)?\s+(?:and\s+|to\s+)?(?P<kind>steps?\s+|vectors?\s+)?")
"""Between two numbers of one reference: `1.4 steps 9 and 10, 10.2`, `5.3 to 5.5; vector 13.7`."""
CROSS_REFERENCE = re.compile(
    r"\((?:[A-Za-z, ]+ )?((?:1[0-3]|[1-9])\.[1-9][0-9]*)(?: step ([0-9]+))?\b"
)
"""How one chapter refers to another: `(5.8)`, `(profile I of 2.13)`, `(1.7 step 4)`."""


def outside_of_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def rules_of(page: Path) -> Iterator[str]:
    """The chapter, its sections, the items of the first numbered list of each, and vectors."""
    chapter = str(int(page.name[:2]))
    yield chapter
    section, last_item = chapter, 0
    for line in outside_of_code(page.read_text(encoding="utf-8")).splitlines():
        heading = re.match(r"## ([0-9]+\.[0-9]+) \S", line)
        item = re.match(rf"{last_item + 1}\. ", line)
        if heading:
            section, last_item = heading.group(1), 0
            yield section
        elif item:
            last_item += 1
            yield f"vector {section}.{last_item}" if section == "13" else f"{section}.{last_item}"


def references_in(text: str) -> Iterator[str]:
    """The rules that a text refers to, as `rules_of` names them."""
    for start in re.finditer(r"\bspec\s+(?=[0-9])", text):
        position, kind, section = start.end(), "", ""
        while number := NUMBER.match(text, position):
            if kind == "vector":
                yield f"vector {number[0]}"
            elif kind == "step" and "." not in number[0]:
                yield f"{section}.{number[0]}"
            else:
                kind, section = "", number[0]
                yield section
            glue = GLUE.match(text, number.end())
            if glue is None:
                break
            position = glue.end()
            kind = glue["kind"].strip().rstrip("s") if glue["kind"] else kind


RULES = frozenset(rule for page in CHAPTERS for rule in rules_of(page))


def test_a_reference_is_taken_apart() -> None:
    text = "(spec 1.4 steps 9 and 10, 10.2), spec 5.3 to 5.5; vectors 13.7, 13.10) fsspec 2026.6"
    assert list(references_in(text)) == [
        "1.4", "1.4.9", "1.4.10", "10.2", "5.3", "5.5", "vector 13.7", "vector 13.10",
    ]  # fmt: skip
    assert list(references_in("relative to the table (spec\n10.2); spec 1.7, step 13.")) == [
        "10.2", "1.7", "1.7.13",
    ]  # fmt: skip


def test_every_reference_leads_to_a_rule() -> None:
    files = [file for place in PLACES for file in (ROOT / place).rglob("*.[pm][yd]")]
    found = [
        (file.relative_to(ROOT).as_posix(), rule)
        for file in files
        if file != Path(__file__) and SPEC not in file.parents
        for rule in references_in(file.read_text(encoding="utf-8"))
    ]
    assert len(found) > 200
    assert [(where, rule) for where, rule in found if rule not in RULES] == []


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_has_its_number_and_refers_to_rules_that_are_there(page: Path) -> None:
    text = outside_of_code(page.read_text(encoding="utf-8"))
    chapter = int(page.name[:2])
    assert text.startswith(f"# {chapter}. ")
    numbers = [(int(a), int(b)) for a, b in re.findall(r"^## ([0-9]+)\.([0-9]+)", text, re.M)]
    assert {of for of, _ in numbers} <= {chapter}
    assert [number for _, number in numbers] == sorted({number for _, number in numbers})
    wanted = [f"{a}.{b}" if b else a for a, b in CROSS_REFERENCE.findall(text)]
    assert [rule for rule in wanted if rule not in RULES] == []


def test_the_index_lists_every_chapter() -> None:
    listed = re.findall(r"\]\(([0-9][0-9]-[^)]*\.md)\)", (SPEC / "README.md").read_text())
    assert listed == [page.name for page in CHAPTERS]
    assert [page.name[:2] for page in CHAPTERS] == [f"{number:02d}" for number in range(1, 14)]


def test_nothing_refers_to_a_document_that_is_not_here() -> None:
    missing = []
    for file in (file for place in PLACES for file in (ROOT / place).rglob("*.[pm][yd]")):
        text = file.read_text(encoding="utf-8")
        named = re.findall(r"\bdocs/[a-z/-]+\.md\b", text)
        missing += [(file.name, page) for page in named if not (ROOT / page).exists()]
        missing += [
            (file.name, it) for it in re.findall(r"\bdesign(?:\s+sections?)?\s+[0-9][^)]*", text)
        ]
    assert missing == []
