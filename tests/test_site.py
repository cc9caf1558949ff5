"""The site: links that lead out of `docs/`, lists in lists, and a whole build."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("commit.md", "[a](locks.md#leases)", "[a](locks.md#leases)"),
        ("commit.md", "[a](../README.md#install)", "[a](start.md#install)"),
        ("spec/01-commit.md", "[a](../commit.md)", "[a](../commit.md)"),
        ("spec/01-commit.md", "[a](02-conflicts.md)", "[a](../spec/02-conflicts.md)"),
        ("spec/01-commit.md", "[a](../../README.md)", "[a](../start.md)"),
        ("start.md", "[a](docs/commit.md#x)", "[a](commit.md#x)"),
        ("start.md", "[`a` b](examples/flights.py)", "`a` b"),
        ("proofs.md", "[a](../integration/test_x.py)", "a"),
        ("commit.md", "[a](#here)", "[a](#here)"),
        ("commit.md", "[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("commit.md", "```\n[a](../x.py)\n```", "```\n[a](../x.py)\n```"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_is_plain_text(
    hooks: ModuleType, page: str, link: str, shown: str
) -> None:
    assert hooks.with_links_of_the_site(link, page) == shown


def test_lists_in_lists_are_indented_by_four(hooks: ModuleType) -> None:
    page = "1. a\n   b\n   - c\n     d\n\n   ```\n   x\n     y\n   ```\n- e\n  - f\n\n```\n  z\n```"
    assert hooks.with_wide_indents(page) == (
        "1. a\n    b\n    - c\n        d\n\n    ```\n    x\n      y\n    ```\n"
        "- e\n    - f\n\n```\n  z\n```"
    )


@pytest.mark.parametrize("module", ["optimist.core", "optimist.core.logstore"])
def test_the_reference_has_each_public_name(hooks: ModuleType, module: str) -> None:
    names = importlib.import_module(module).__all__
    page = hooks.reference_page(module, "Heading")
    assert re.findall(rf"^::: {re.escape(module)}\.(\w+)$", page, re.MULTILINE) == names


@pytest.mark.again
@pytest.mark.skipif(
    shutil.which("npm") is None and os.environ.get("REQUIRE_EMULATORS") != "1",
    reason="npm brings what draws the diagrams",
)
def test_the_site_has_all_pages_and_asks_no_other_host() -> None:
    built = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = ROOT / "build" / "site"
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    source = ROOT / "docs"
    assert {
        page.relative_to(source).with_suffix(".html").as_posix().replace("README", "index")
        for page in source.rglob("*.md")
    } <= pages
    asked = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']?(?:https?:)?//""")
    for page in pages:
        assert asked.search((site / page).read_text(encoding="utf-8")) is None, page
    assert "id=optimist.core.DeltaLog.append" in _unquoted(site / "reference/optimist.core.html")


def _unquoted(page: Path) -> str:
    return page.read_text(encoding="utf-8").replace('"', "")
