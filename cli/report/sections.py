"""The sections of the report: figures, as charts and as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.cli.report.advice import Advice
from optimist.cli.report.charts import Chart, bars, last_of_each_interval, lines, stacked_over_time
from optimist.cli.report.html import Column, Html, amount, element, grid, moment, size, text
from optimist.cli.report.layout import Layout
from optimist.cli.report.over_time import TableOverTime
from optimist.cli.report.texts import bytes_text, plural, share_text
from optimist.cli.work.left_out_files import ExplainedFiles
from optimist.cli.work.overtaken_commits import OvertakenCommits
from optimist.core import CheckedTable
from optimist.core.errors.foreign_text import shown
from optimist.core.snapshot import Snapshot

__all__ = [
    "Section",
    "advice_section",
    "check_section",
    "commit_section",
    "growth_section",
    "layout_section",
    "query_section",
    "race_section",
]

_MOST_KINDS = 6
_MOST_ROWS = 50
_MOST_STATES = 40
_OTHERS = "all others"
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page.

    Attributes:
        key: Its name in links.
        title: Its heading.
        intro: What it tells, in a sentence or two.
        parts: Charts and HTML, in order.
        tables: The same figures as tables, which are folded away.
    """

    key: str
    title: str
    intro: str
    parts: Sequence[Chart | Html] = ()
    tables: Sequence[Html] = field(default=())


def advice_section(advice: Sequence[Advice]) -> Section:
    """Return what to do next."""
    items = [
        element(
            "li",
            element("h3", each.title),
            element("p", each.why, " ", element("strong", each.gain)),
            element("pre", element("code", each.command)),
            class_="urgent" if each.is_urgent else "advice",
        )
        for each in advice
    ]
    if items:
        intro = f"{plural(len(items), 'thing')} to do, the most important first."
        return Section("next", "What to do next", intro, [element("ol", *items)])
    return Section("next", "What to do next", "Nothing: the log shows no work that would pay off.")


def growth_section(over_time: TableOverTime) -> Section:
    """Return how the table grew."""
    states = over_time.states
    has_rows = states.num_rows > states.column("rows").null_count
    note = "Versions are left out in which a file does not tell its rows."
    names = [name for name in ("rows", "bytes", "files") if name != "rows" or has_rows]
    notes = {"rows": note} if states.column("rows").null_count else {}
    charts = [lines(name.capitalize(), states, name, notes.get(name, "")) for name in names]
    columns = [
        amount("version", "Version"),
        moment("time", "Time"),
        amount("rows", "Rows"),
        size("bytes", "Bytes"),
        amount("files", "Files"),
    ]
    few = _spread(states)
    caption = "The table after some of its commits"
    intro = (
        f"The log has {plural(states.num_rows, 'commit')}; each chart shows the table after them."
    )
    return Section("growth", "The table over time", intro, charts, [grid(caption, few, columns)])


def commit_section(over_time: TableOverTime) -> Section:
    """Return what was committed, and by whom."""
    states = over_time.states
    parts: list[Chart | Html] = []
    tables = []
    for kind, heading in (("operation", "Commits by operation"), ("writer", "Commits by writer")):
        few = states.set_column(
            states.schema.get_field_index(kind), kind, _few_kinds(states.column(kind))
        )
        parts.append(stacked_over_time(heading, few, kind))
        columns = [
            text(kind, kind.capitalize()),
            amount("commits", "Commits"),
            moment("first", "First"),
            moment("last", "Last"),
        ]
        tables.append(grid(heading, _by_kind(states, kind), columns))
    intro = "A commit's writer is the engine that it names."
    return Section("commits", "Who commits what", intro, parts, tables)


def layout_section(snapshot: Snapshot, layout: Layout) -> Section:
    """Return how the files lie."""
    sizes = [
        {"name": row["size"], "value": row["files"], "kind": "files", "rank": 0, "text": _text(row)}
        for row in layout.sizes.to_pylist()
    ]
    parts: list[Chart | Html] = [bars("Files by size", sizes)]
    tables = [grid("Files by size", layout.sizes, [text("size", "Size"), *_FILES_AND_BYTES])]
    if layout.partitions.num_rows:
        heading = f"Bytes by partition ({layout.num_partitions:,} in all)"
        rows = layout.partitions.to_pylist()
        names = _distinct([shown(row["partition"], 60) for row in rows])
        largest = [
            {"name": name, "value": row["bytes"], "kind": "bytes", "rank": 0, "text": _text(row)}
            for name, row in zip(names, rows, strict=True)
        ]
        parts.append(bars(heading, largest, unit="B"))
        columns = [text("partition", "Partition"), *_FILES_AND_BYTES]
        tables.append(grid("The largest partitions", layout.partitions, columns))
    parts.append(_overlap_grid(layout))
    files = snapshot.num_files
    facts = [
        f"{share_text(layout.with_rows, files)} of the files tell their rows",
        f"{plural(layout.with_vector, 'file')} with a deletion vector",
        f"{plural(layout.deleted_rows, 'row')} deleted by vectors",
    ]
    intro = f"{'; '.join(facts)}."
    return Section("layout", "How the files lie", intro, parts, tables)


def query_section(queries: Sequence[tuple[str, ExplainedFiles | str]]) -> Section:
    """Return what queries read and why.

    Args:
        queries: Each condition with its files, or with the text of its error.
    """
    if not queries:
        intro = 'No query was given. Add them with --query, such as --query "month = 1".'
        return Section("queries", "What a query reads", intro)
    chart, rows, tables = [], [], []
    errors: list[Html] = []
    for number, (query, found) in enumerate(queries, 1):
        if isinstance(found, str):
            errors.append(element("p", element("code", shown(query)), ": ", found, class_="error"))
            continue
        read, left_out = found.count(read=True), found.count(read=False)
        name = f"{number}. {shown(query, 60)}"
        rows.append(_query_row(query, read, left_out))
        for rank, (kind, (files, bytes_)) in enumerate((("read", read), ("left out", left_out))):
            told = f"{kind}: {plural(files, 'file')}, {bytes_text(bytes_)}"
            chart.append({"name": name, "value": bytes_, "kind": kind, "rank": rank, "text": told})
        columns = [text("rule", "Left out by"), *_FILES_AND_BYTES]
        tables.append(grid(f"Why files are left out of: {shown(query)}", found.rules, columns))
    intro = "What the log leaves out before a file is opened, by partition values and statistics."
    summary = grid("What each query reads", pa.Table.from_pylist(rows), _QUERY_COLUMNS)
    parts: list[Chart | Html] = (
        [bars("Bytes read and left out", chart, unit="B"), summary] if rows else []
    )
    return Section("queries", "What a query reads", intro, [*parts, *errors], tables)


def race_section(overtaken: OvertakenCommits) -> Section:
    """Return which writers got in each other's way."""
    facts, commits = overtaken.facts, overtaken.commits
    intro = (
        f"Others overtook {facts['numOvertaken']:,} of {facts['numCommits']:,} commits while their "
        f"transactions ran; {facts['numWithReadVersion']:,} tell what they read. A transaction "
        "that ended in a conflict leaves nothing in the log, nor does the number of attempts."
    )
    if not commits.num_rows:
        return Section("races", "Conflicts and retries", intro)
    rows = pa.table({"writer": _known(commits.column("engineInfo")), "by": commits["overtakenBy"]})
    sums = rows.group_by("writer", use_threads=False).aggregate(
        [("by", "count"), ("by", "sum"), ("by", "max")]
    )
    by_writer = sums.sort_by([("by_count", "descending")]).slice(0, _MOST_ROWS)
    writers = [
        text("writer", "Writer"),
        amount("by_count", "Overtaken commits"),
        amount("by_sum", "Commits that overtook them"),
        amount("by_max", "Most at once"),
    ]
    pairs = [
        text("operation", "Operation"),
        text("overtakenBy", "Overtaken by"),
        amount("times", "Times"),
    ]
    parts = [
        grid("Overtaken commits by writer", by_writer, writers),
        grid("Which operation overtook which", overtaken.operations.slice(0, _MOST_ROWS), pairs),
    ]
    return Section("races", "Conflicts and retries", intro, parts)


def check_section(
    checked: CheckedTable | str | None, examined: Sequence[tuple[str, bool, str]]
) -> Section:
    """Return what fsck and doctor say.

    Args:
        checked: What fsck found, the text of its error, or None if it was not asked.
        examined: What doctor tried: the check, whether it went well, and the detail.
    """
    parts: list[Chart | Html] = []
    if isinstance(checked, str):
        parts.append(element("p", "fsck could not run: ", checked, class_="error"))
    elif checked is None:
        parts.append(element("p", "fsck was not asked."))
    else:
        parts += _found(checked)
    if examined:
        rows = [
            {"check": check, "state": "fine" if ok else "fails", "detail": detail}
            for check, ok, detail in examined
        ]
        columns = [text("check", "doctor tried to"), text("state", "It"), text("detail", "Detail")]
        parts.append(grid("What doctor says", pa.Table.from_pylist(rows), columns))
    return Section("checks", "Checks", "What fsck and doctor say.", parts)


def _found(checked: CheckedTable) -> list[Html]:
    findings = checked.findings
    looked = f"{plural(checked.num_commits, 'commit')} and {plural(checked.num_files or 0, 'file')}"
    if not findings.num_rows:
        return [element("p", f"fsck looked at {looked} and found nothing.")]
    columns = [
        text("kind", "Kind"),
        text("path", "Path"),
        Column("bytes", "Bytes", lambda value: "-" if value is None else bytes_text(value), True),
        text("proof", "Proof"),
        text("repair", "What to do"),
    ]
    more = max(0, findings.num_rows - _MOST_ROWS)
    told = f"fsck looked at {looked} and found {plural(findings.num_rows, 'thing')}"
    rest = f"; {more:,} of them are not shown here." if more else "."
    caption = "What fsck found"
    return [element("p", told + rest), grid(caption, findings.slice(0, _MOST_ROWS), columns)]


def _overlap_grid(layout: Layout) -> Html:
    rows = [
        {"column": each.column, "with": each.with_bounds, "reads": each.files_per_value}
        for each in layout.overlaps
    ]
    if not rows:
        return element("p", "No column has statistics of its values.")
    columns = [
        text("column", "Column"),
        amount("with", "Files with its range"),
        amount("reads", "Files read for one value, on average"),
    ]
    return grid(
        "How well a condition on a column leaves files out", pa.Table.from_pylist(rows), columns
    )


def _query_row(query: str, read: tuple[int, int], left_out: tuple[int, int]) -> dict[str, object]:
    whole = read[1] + left_out[1]
    return {
        "query": query,
        "filesRead": read[0],
        "bytesRead": read[1],
        "filesLeftOut": left_out[0],
        "bytesLeftOut": left_out[1],
        "share": share_text(read[1], whole),
    }


_FILES_AND_BYTES = (amount("files", "Files"), size("bytes", "Bytes"))
_QUERY_COLUMNS = (
    text("query", "Query"),
    amount("filesRead", "Files read"),
    size("bytesRead", "Bytes read"),
    amount("filesLeftOut", "Files left out"),
    size("bytesLeftOut", "Bytes left out"),
    text("share", "Share read"),
)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names with numbers where they are alike, since a chart puts these into one bar."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _text(row: dict[str, int]) -> str:
    return f"{plural(row['files'], 'file')}, {bytes_text(row['bytes'])}"


def _spread(states: pa.Table) -> pa.Table:
    """Return some rows, the newest first: those of a chart, or fewer at equal distances."""
    few = last_of_each_interval(states)
    count = min(few.num_rows, _MOST_STATES)
    last = few.num_rows - 1
    chosen = [last - round(at * last / max(1, count - 1)) for at in range(count)]
    return few.take(pa.array(chosen, pa.int64()))


def _known(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(names, _UNKNOWN)


def _few_kinds(names: pa.ChunkedArray) -> pa.Array:
    """Return names for a chart: cut, and the rare ones as one."""
    encoded = _known(names).combine_chunks().dictionary_encode()
    counts = pc.value_counts(encoded.indices).sort(order="descending", by="counts")
    frequent = set(counts.field("values").to_pylist()[:_MOST_KINDS])
    short = [
        shown(name, 60) if number in frequent else _OTHERS
        for number, name in enumerate(encoded.dictionary.to_pylist())
    ]
    return pa.array(short, pa.string()).take(encoded.indices)


def _by_kind(states: pa.Table, kind: str) -> pa.Table:
    rows = pa.table({kind: _known(states.column(kind)), "time": states.column("time")})
    sums = rows.group_by(kind, use_threads=False).aggregate(
        [("time", "count"), ("time", "min"), ("time", "max")]
    )
    found = sums.select([kind, "time_count", "time_min", "time_max"])
    found = found.rename_columns([kind, "commits", "first", "last"])
    return found.sort_by([("commits", "descending"), (kind, "ascending")]).slice(0, _MOST_ROWS)
