"""What the site has beyond the pages of this folder: a start page, and the reference of the code.

mkdocs calls the functions that begin with `on_` (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent.parent
ADDED_PAGES = {"README.md": "start.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages at the top of the checkout, and their names on the site."""
REFERENCE = {
    "optimist.core": "Tables without Spark",
    "optimist.core.errors": "Errors",
    "optimist.spark": "Tables on Spark",
    "optimist.logstores": "Stores",
    "optimist.locks": "Arbiters and leases",
    "optimist.core.logstore": "The contract of a store",
    "optimist.core.arbiter": "The contract of an arbiter",
    "optimist.core.lease": "The contract of a lease",
}
"""The modules with public names, each with the heading of its page."""
DIAGRAMS = ROOT / "build" / "docs" / "package" / "dist" / "mermaid.min.js"
"""What draws diagrams; without it on the site, the theme would ask another host for it."""

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the top of the checkout, and a page for each public module."""
    from mkdocs.structure.files import File

    for name, page in ADDED_PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for module, heading in REFERENCE.items():
        page = f"reference/{module}.md"
        files.append(File.generated(config, page, content=reference_page(module, heading)))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(DIAGRAMS)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links outside this folder to pages of the site, and indent lists as mkdocs wants it."""
    del config, files
    return with_wide_indents(with_links_of_the_site(markdown, page.file.src_uri))


def with_links_of_the_site(markdown: str, page: str) -> str:
    """Return a page with links that the site can follow.

    Args:
        markdown: The text of the page, with links as they are in the checkout.
        page: The path of the page on the site.
    """
    here = _path_in_checkout(page)

    def changed(link: re.Match[str]) -> str:
        text, target = link.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return link.group()
        wanted = _normal(here.parent / path)
        if wanted in ADDED_PAGES:
            wanted = f"docs/{ADDED_PAGES[wanted]}"
        found = wanted.startswith("docs/") and (wanted.endswith(".md") or "." not in wanted)
        if not found:
            return str(text)
        ups = "../" * page.count("/")
        return f"[{text}]({ups}{wanted.removeprefix('docs/')}{mark}{anchor})"

    return _outside_code(markdown, lambda text: _LINK.sub(changed, text))


def with_wide_indents(markdown: str) -> str:
    """Return a page whose lists in lists are indented by four columns instead of two or three."""
    lines = []
    more, fence = 0, ""
    for line in markdown.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        mark = re.match(r" *(```|~~~)", line)
        if not fence:
            more = 4 * ((indent + 2) // 3) - indent if indent > 1 else 0
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        lines.append(" " * more + line if line.strip() else line)
    return "\n".join(lines)


def reference_page(module: str, heading: str) -> str:
    """Return the page of a module: the docstrings of its public names."""
    lines = [f"# {heading}: `{module}`", ""]
    for name in public_names(module):
        lines += [f"::: {module}.{name}", ""]
    return "\n".join(lines)


def public_names(module: str) -> list[str]:
    """Return the names in `__all__` of a module, read without importing it."""
    place = ROOT.joinpath(*module.split("."))
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise ValueError(f"{module} has no __all__")


def _path_in_checkout(page: str) -> PurePosixPath:
    sources = {added: name for name, added in ADDED_PAGES.items()}
    return PurePosixPath(sources.get(page, f"docs/{page}"))


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1] if parts else [".."]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Change the text between blocks of code, and leave the blocks."""
    pieces = re.split(r"(^ *(```|~~~).*?^ *\2[ \t]*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    # A split by two groups gives the text, the block and its fence in turn.
    return "".join(
        change(piece) if at % 3 == 0 else piece for at, piece in enumerate(pieces) if at % 3 < 2
    )
