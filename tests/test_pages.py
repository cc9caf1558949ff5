"""The pages: one sentence per line, and links, files and code that exist."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("benchmarks", "docs", "examples", "integration", "localstack", "tests")
FOUND = [*ROOT.glob("*.md"), *(page for each in FOLDERS for page in (ROOT / each).rglob("*.md"))]
# Emulators bring pages along, in folders that begin with a dot.
PAGES = sorted(page for page in FOUND if "/." not in f"/{page.relative_to(ROOT)}")

_FENCE = re.compile(r"[\s>]*(```|~~~)")
_MARKER = re.compile(r"(?:> ?)*\s*(?:(?:[-*+]|\d+\.) +)?")
_STARTS_ITEM = re.compile(r"(?:> ?)*\s*(?:[-*+]|\d+\.) ")
_CODE = re.compile(r"(`+).+?\1|<!--.*?-->")
_TAG = re.compile(r"\s*\*\*\[[A-Z]+\]\*\*")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf)\.$")
_LABEL = re.compile(r"(\*{1,2})[^*]+\1$")
_END = re.compile(r"""(?<!\.)[.!?]["'”)\]*_]*(?=\s|$)""")
_LINE_END = re.compile(r"""[.!?:;…]["'”)\]*_`]*$""")


def prose_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """The paragraphs and list items of a page, each with the number of its first line."""
    block: list[str] = []
    first, fence = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = _FENCE.match(line)
        is_code = bool(fence or mark)
        if mark and (not fence or mark.group(1) == fence):
            fence = "" if fence else mark.group(1)
        bare = line[_MARKER.match(line).end() :] if not is_code else ""
        is_prose = bool(bare.strip()) and not bare.startswith(("|", "#", "<!--"))
        if block and (not is_prose or _STARTS_ITEM.match(line)):
            yield first, block
            block = []
        if is_prose:
            first = number if not block else first
            block.append(line)


def sentences(text: str) -> list[str]:
    """A paragraph cut after each sentence; code has no end, nor has a label at the beginning."""
    hidden = _CODE.sub(lambda match: "x" * len(match.group()), text)
    ends = (match.end() for match in _END.finditer(hidden))
    cuts = [end for end in ends if not _is_within(hidden[:end], hidden[end:])]
    parts = [text[start:end].strip() for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    return [part for part in parts if part]


def _is_within(beginning: str, rest: str) -> bool:
    """Whether what looks like an end is an abbreviation, a label in bold, or comes before a tag."""
    is_inner = _ABBREVIATION.search(beginning) or _LABEL.fullmatch(beginning)
    return bool(is_inner or _TAG.fullmatch(rest))


def misplaced_breaks(text: str) -> list[str]:
    """Lines with more than one sentence, and lines on which one is not ended."""
    found = []
    for first, block in prose_blocks(text):
        for offset, line in enumerate(block):
            inner = line[_MARKER.match(line).end() :]
            place = f"line {first + offset}: {inner[:60]}"
            if len(sentences(inner)) > 1:
                found.append(f"more than one sentence in {place}")
            hidden = _CODE.sub("x", inner).rstrip()
            if offset + 1 < len(block) and not _LINE_END.search(hidden):
                found.append(f"a sentence goes on after {place}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_sentence_has_a_line_of_its_own(page: Path) -> None:
    assert misplaced_breaks(page.read_text(encoding="utf-8")) == []


def test_two_sentences_on_a_line_and_one_on_two_lines_are_found() -> None:
    told = misplaced_breaks(
        "- One. Two.\n\nThree goes\non. \n\n1. `a. b.` is code\n\n> Four. Five.\n"
    )
    assert [line.partition(" in ")[0].partition(" after ")[0] for line in told] == [
        "more than one sentence",
        "a sentence goes on",
        "more than one sentence",
    ]


def test_tables_code_headings_and_comments_may_be_as_they_are() -> None:
    page = (
        "# One. Two\n\n| a. b. | c |\n|---|---|\n\n```\nOne. Two\ngoes on\n```\n\n<!-- A. B. -->\n"
    )
    assert misplaced_breaks(page) == []


# Links within and between pages


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it of them."""
    lines = page.read_text(encoding="utf-8").splitlines()
    headings = [re.sub(r"^#+ ", "", line) for line in lines if re.match(r"#+ ", line)]
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith("http")]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    wrong = [
        f"{path}#{anchor}"
        for path, anchor in links
        if not path.startswith("http")
        and (target := (page.parent / path).resolve() if path else page).suffix == ".md"
        and target.exists()
        and anchor not in anchors(target)
    ]
    assert wrong == []


# Files that pages name

_NAMED = re.compile(rf"`((?:cli|core|locks|logstores|spark|typings|{'|'.join(FOLDERS)})/[\w/.-]*)`")
_MADE_LATER = {"localstack/.servers/"}
_OF_TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", _OF_TODAY, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = set(_NAMED.findall(page.read_text(encoding="utf-8"))) - _MADE_LATER
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


# Code that pages show

_PYTHON = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def code_of(text: str) -> list[str]:
    """The blocks of Python in a page."""
    return [textwrap.dedent(block) for _, block in _PYTHON.findall(text)]


def imports_of(code: str) -> Iterator[tuple[str, str]]:
    """The names that a block takes from our packages, each with its module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("optimist."):
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("page", _OF_TODAY, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_of_a_page_parses_and_names_what_is_there(page: Path) -> None:
    blocks = code_of(page.read_text(encoding="utf-8"))
    named = {pair for block in blocks for pair in imports_of(block)}
    missing = [
        pair for pair in sorted(named) if not hasattr(importlib.import_module(pair[0]), pair[1])
    ]
    assert missing == []


def test_what_to_do_after_an_open_outcome_runs_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = DeltaLog.for_path(str(tmp_path / "flights"))
    rows = pa.table({"month": [1]})
    text = (ROOT / "docs" / "commit.md").read_text(encoding="utf-8")
    answers = text.partition("## My commit timed out")[2].partition("## What is a conflict")[0]
    asking, looking, closing, _with_spark = code_of(answers)
    exec(asking, {"log": log, "rows": rows})
    exec(looking, {"log": log})
    assert "WRITE" in capsys.readouterr().out
    exec(closing, {"log": log})
    assert (log.snapshot().version, log.count()) == (1, 1)
