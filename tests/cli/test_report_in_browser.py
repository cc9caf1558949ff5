"""The report in a real browser: it fits each window, in both schemes, and asks for nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.cli.report import table_report
from optimist.core import DeltaLog

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
WIDTHS = (320, 1600)
DARK = "--blink-settings=preferredColorScheme=0"
FRAME = """<!DOCTYPE html><body><pre id=told></pre><script>
const told = {};
const widths = %s;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.width = width;
  frame.height = 900;
  frame.src = "page.html";
  frame.onload = () => {
    const page = frame.contentDocument;
    const root = page.documentElement;
    for (const each of page.querySelectorAll("details")) each.open = true;
    const charts = [...page.querySelectorAll("svg")].filter((each) => each.clientWidth > 0);
    const edge = root.clientWidth;
    const style = frame.contentWindow.getComputedStyle(page.body);
    told[width] = {
      wider: root.scrollWidth - edge,
      outside: charts.filter((each) => each.getBoundingClientRect().right > edge).length,
      charts: charts.length,
      asked: frame.contentWindow.performance.getEntriesByType("resource").length,
      scripts: page.scripts.length,
      background: style.backgroundColor,
      ink: style.color,
      figures: [...page.querySelectorAll("[data-value]")].map((each) => each.dataset.value),
    };
    document.getElementById("told").textContent = JSON.stringify(told);
  };
  document.body.append(frame);
}
</script></body>"""


def shown(folder: Path, *flags: str) -> dict[str, dict]:
    """Return what a browser says of the page `page.html`, by the width of the window."""
    (folder / "frame.html").write_text(FRAME % json.dumps(WIDTHS))
    program = [
        *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--allow-file-access-from-files", "--virtual-time-budget=20000"),
        *(f"--user-data-dir={folder / 'profile'}", "--window-size=1700,1000"),
    ]
    address = (folder / "frame.html").as_uri()
    ran = subprocess.run([*program, *flags, address], capture_output=True, text=True, timeout=240)
    found = re.search(r"<pre id=\"told\">(.*?)</pre>", ran.stdout, re.DOTALL)
    assert found, (ran.stdout[-2000:], ran.stderr[-2000:])
    return json.loads(found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def brightness(colour: str) -> int:
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    name = "a_column_with_a_name_that_is_far_too_long_for_a_narrow_window"
    log = DeltaLog.for_path(str(place / ("directory_" * 20)))
    for number in range(12):
        rows = {"p": [number % 3, 5], name: [number, 10**15], "s": ["x" * 300, "y"]}
        log.append(pa.table(rows), partition_by=("p",))
    queries = [f"{name} = 5 AND p = 1", f"s = '{'x' * 300}'"]
    (place / "page.html").write_text(table_report(log, queries).html)
    return place


@pytest.mark.parametrize(
    "flags",
    [pytest.param((), id="light"), pytest.param((DARK,), id="dark", marks=pytest.mark.again)],
)
def test_the_page_fits_each_window_and_asks_for_nothing(folder: Path, flags: tuple) -> None:
    told = shown(folder, *flags)
    assert set(told) == set(map(str, WIDTHS))
    figures = re.findall(r'data-value="([^"]*)"', (folder / "page.html").read_text())
    for page in told.values():
        assert (page["wider"], page["outside"], page["asked"], page["scripts"]) == (0, 0, 0, 0)
        assert page["charts"] == 8
        assert page["figures"] == figures
        is_dark = brightness(page["background"]) < brightness(page["ink"])
        assert is_dark == bool(flags)
