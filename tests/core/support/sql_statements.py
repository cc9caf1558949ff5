"""Random statements of the grammar, and random texts that mean them."""

from __future__ import annotations

import re
from decimal import Decimal

from hypothesis import strategies as st

from optimist.core.requests.alterations import (
    AddConstraint,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
)
from optimist.core.requests.merge_clauses import Clause
from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql import statements as ss

WORDS = [
    "a",
    "b_1",
    "ähre",
    "T1",
    "optimize",
    "zorder",
    "by",
    "table",
    "history",
    "detail",
    "limit",
    "full",
    "lite",
    "column",
    "constraint",
    "check",
    "where",
    "when",
    "then",
    "matched",
    "delta",
    "version",
    "timestamp",
    "clone",
    "shallow",
    "feature",
    "none",
    "cluster",
    "identity",
    "sync",
    "dry",
    "run",
    "hours",
    "retain",
    "inventory",
    "apply",
    "purge",
    "source",
    "target",
    "end",
    "case",
    "\u0131",
]
ODD = ["a b", "x.y", "`", "1", "2e5", "", "semi;colon", "--", "/*", "it's", "new\nline"]
_UNQUOTED_NEVER = {"where", "when", "for", "version", "timestamp", "table", "end", "case"}
_BLANKS = [" ", "\n", "\t ", " -- it's (\n", "/* a /* nested ' */ ` */", "\r\n"]


class Piece(str):
    """A part of a statement's text; `is_keyword` ones may be in any case."""

    __slots__ = ("is_keyword",)

    def __new__(cls, text: str, is_keyword: bool = False) -> Piece:
        piece = super().__new__(cls, text)
        piece.is_keyword = is_keyword
        return piece


names = st.sampled_from(WORDS) | st.sampled_from([odd for odd in ODD if odd])
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
values = st.sampled_from(["it's", "", "a\\b", "\n", 'say "x"', "--", "ä", "100%", "\0", "\\'"])
conditions = st.recursive(
    st.sampled_from(
        [
            "a = 1",
            "`x y` <> 'it''s ; -- ('",
            "t.zorder.when = 1 /* ( */ AND t.end",
            r"""b LIKE "\"%)" """.strip(),
            "c BETWEEN :low AND ?",
            "m[1] <=> -2.5e3",
            "x::int >= 7BD -- '\n + 1",
            "date '2026-01-01' IS NOT NULL",
            "by",
        ]
    ),
    lambda inner: st.one_of(
        inner.map("({})".format),
        st.tuples(inner, inner).map(" OR ".join),
        inner.map("CASE WHEN {} THEN f(a, b) ELSE 'x' END > 2".format),
        inner.map("EXISTS (SELECT 1, 2 FROM u WHERE {})".format),
    ),
    max_leaves=4,
)
sql = conditions.map(ss.SqlText)
names_of_tables = st.builds(ss.TableName, paths | st.just(("delta", "/p/`q`")))
tables_or_texts = names_of_tables | st.builds(
    ss.TableName, values.filter(bool).map(lambda path: (path,)), st.just(True)
)
travels = st.builds(ss.TimeTravel, version=st.integers(0, 10**18)) | st.builds(
    ss.TimeTravel, timestamp=values
)
_hours = st.decimals(-1000, 1000, allow_nan=False, places=1) | st.just(Decimal(168))
_columns = st.lists(paths, max_size=3).map(tuple)
_some_columns = st.lists(paths, min_size=1, max_size=3).map(tuple)
_assignments = st.lists(st.builds(ss.Assignment, paths, sql), min_size=1, max_size=3).map(tuple)
_optional = st.none()
_pairs = st.dictionaries(names | values, values, max_size=2).map(lambda found: tuple(found.items()))

_changes = st.one_of(
    st.builds(AddConstraint, names, conditions),
    st.builds(DropConstraint, names, st.booleans()),
    st.builds(DropFeature, names, st.booleans()),
    st.builds(ClusterBy, _columns),
    st.builds(SyncIdentity, paths),
)
commands = st.one_of(
    st.builds(ss.Optimize, tables_or_texts, st.booleans(), _optional | sql, _columns),
    st.builds(
        ss.Vacuum,
        tables_or_texts,
        st.sampled_from([None, "LITE", "FULL"]),
        _optional | tables_or_texts | sql,
        _optional | _hours,
        st.booleans(),
    ),
    st.builds(ss.DescribeHistory, tables_or_texts, _optional | st.integers(0, 10**9)),
    st.builds(ss.DescribeDetail, tables_or_texts),
    st.builds(ss.Generate, names, names_of_tables),
    st.builds(
        ss.ConvertToDelta,
        names_of_tables,
        st.booleans(),
        st.lists(
            st.builds(
                ss.ColumnType,
                names,
                st.sampled_from(["int", "decimal(38, 2)", "STRUCT<a: INT>"]).map(ss.SqlText),
                st.booleans(),
                _optional | values,
            ),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(ss.Restore, names_of_tables, travels),
    st.builds(ss.Analyze, names_of_tables),
    st.builds(ss.AlterTable, names_of_tables, _changes),
    st.builds(ss.Reorg, names_of_tables, _optional | sql),
    st.builds(ss.Reorg, names_of_tables, st.none(), st.integers(1, 3)),
    st.builds(
        ss.CreateLike,
        names_of_tables,
        names_of_tables,
        st.booleans(),
        _optional | st.sampled_from(["delta", "DELTA"]),
        _optional | values,
        _pairs,
    ),
    st.builds(
        ss.Clone,
        names_of_tables,
        st.sampled_from(list(CreateMode)),
        names_of_tables,
        st.booleans(),
        _optional | travels,
        _pairs,
        _optional | values,
    ),
)
_clauses = st.one_of(
    st.builds(
        Clause,
        st.just("MATCHED"),
        st.just("update"),
        _optional | sql,
        _optional | _assignments,
    ),
    st.builds(
        Clause,
        st.just("NOT MATCHED"),
        st.just("insert"),
        _optional | sql,
        _optional | _assignments,
    ),
    st.builds(
        Clause,
        st.just("NOT MATCHED BY SOURCE"),
        st.just("update"),
        _optional | sql,
        _assignments,
    ),
    st.builds(
        Clause,
        st.sampled_from(["MATCHED", "NOT MATCHED BY SOURCE"]),
        st.just("delete"),
        _optional | sql,
    ),
)
row_changes = st.one_of(
    st.builds(ss.Delete, names_of_tables, _optional | names, _optional | sql),
    st.builds(ss.Update, names_of_tables, _assignments, _optional | names, _optional | sql),
    st.builds(
        ss.Merge,
        names_of_tables,
        names_of_tables | sql,
        sql,
        st.lists(_clauses, min_size=1, max_size=3).map(tuple),
        _optional | names,
        _optional | names,
        st.booleans(),
    ),
)


@st.composite
def texts_of(draw, statement):
    """A text that means the statement: random case, quotes, blanks and comments."""
    pieces = _Printer(draw).pieces(statement)
    text = "".join(draw(st.lists(st.sampled_from(_BLANKS), max_size=2)))
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        text += draw(st.sampled_from([piece.upper(), piece.lower()])) if piece.is_keyword else piece
        text += " " * piece.endswith("*")  # to Spark `*/` is one sign, also where `/*` is meant
        must = following is not None and _is_wordlike(piece[-1]) and _is_wordlike(following[0])
        text += "".join(draw(st.lists(st.sampled_from(_BLANKS), min_size=int(must), max_size=2)))
    return text + draw(st.sampled_from(["", ";", " ; ;\n"]))


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character in "_'`\".-:?"


class _Printer:
    def __init__(self, draw) -> None:
        self.draw = draw

    def choose(self, *choices):
        return self.draw(st.sampled_from(choices))

    def words(self, text: str) -> list[Piece]:
        return [Piece(word, True) for word in text.split()]

    def name(self, name: str) -> Piece:
        is_plain = re.fullmatch(r"\w+", name) and not name[0].isdigit()
        if is_plain and name.lower() not in _UNQUOTED_NEVER and self.choose(True, False):
            return Piece(name)
        return Piece("`" + name.replace("`", "``") + "`")

    def path(self, parts) -> list[Piece]:
        found = [self.name(parts[0])]
        for part in parts[1:]:
            found += Piece("."), self.name(part)
        return found

    def text(self, value: str) -> Piece:
        quote = self.choose("'", '"')
        if "\\" not in value and quote not in value and self.choose(True, False):
            return Piece(self.choose("r", "R") + quote + value + quote)
        escaped = value.replace("\\", "\\\\").replace("\0", self.choose(r"\0", r"\u0000"))
        escaped = escaped.replace("\n", self.choose("\n", r"\n", r"\u000a", r"\012"))
        return Piece(quote + escaped.replace(quote, self.choose("\\" + quote, quote * 2)) + quote)

    def table(self, table) -> list[Piece]:
        return [self.text(table.parts[0])] if table.is_text else self.path(table.parts)

    def columns(self, columns) -> list[Piece]:
        pieces = [piece for path in columns for piece in (Piece(","), *self.path(path))]
        return [Piece("("), *pieces[1:], Piece(")")]

    def alias(self, alias) -> list[Piece]:
        if alias is None:
            return []
        return [*self.words(self.choose("AS", "")), Piece("`" + alias.replace("`", "``") + "`")]

    def where(self, condition) -> list[Piece]:
        return [] if condition is None else [*self.words("WHERE"), Piece(condition.sql)]

    def travel(self, travel) -> list[Piece]:
        if travel is None:
            return []
        for_ = self.words(self.choose("FOR", ""))
        if travel.version is None:
            words = self.words(self.choose("TIMESTAMP AS OF", "SYSTEM_TIME AS OF"))
            return [*for_, *words, self.text(travel.timestamp)]
        words = self.words(self.choose("VERSION AS OF", "SYSTEM_VERSION AS OF"))
        number = self.choose("{}", "'{}'", "{}L").format(travel.version)
        return [*for_, *words, Piece(number)]

    def assignments(self, assignments) -> list[Piece]:
        pieces = []
        for item in assignments:
            pieces += Piece(","), *self.path(item.column), Piece("="), Piece(item.value.sql)
        return pieces[1:]

    def pieces(self, statement) -> list[Piece]:
        return getattr(self, type(statement).__name__)(statement)

    def Optimize(self, s):
        zorder = self.words("ZORDER BY") + self.columns(s.zorder_by) if s.zorder_by else []
        if s.zorder_by and self.choose(True, False):
            zorder = [piece for piece in zorder if piece not in ("(", ")")]
        full = self.words("FULL" if s.is_full else "")
        return [*self.words("OPTIMIZE"), *self.table(s.table), *full, *self.where(s.where), *zorder]

    def Vacuum(self, s):
        modifiers = [self.words(s.mode or ""), self.words("DRY RUN" if s.is_dry_run else "")]
        if s.retain_hours is not None:
            number = [Piece(str(s.retain_hours))]
            modifiers.append([*self.words("RETAIN"), *number, *self.words("HOURS")])
        if isinstance(s.inventory, ss.SqlText):
            query = [Piece("("), Piece(s.inventory.sql), Piece(")")]
            modifiers.append([*self.words("USING INVENTORY"), *query])
        elif s.inventory is not None:
            modifiers.append([*self.words("USING INVENTORY"), *self.table(s.inventory)])
        ordered = self.draw(st.permutations(modifiers))
        return [*self.words("VACUUM"), *self.table(s.table), *(p for item in ordered for p in item)]

    def DescribeHistory(self, s):
        limit = [] if s.limit is None else [*self.words("LIMIT"), Piece(str(s.limit))]
        words = self.words(self.choose("DESC", "DESCRIBE") + " HISTORY")
        return [*words, *self.table(s.table), *limit]

    def DescribeDetail(self, s):
        words = self.words(self.choose("DESC", "DESCRIBE") + " DETAIL")
        return [*words, *self.table(s.table)]

    def Generate(self, s):
        words = self.words("FOR TABLE")
        return [*self.words("GENERATE"), self.name(s.mode), *words, *self.table(s.table)]

    def ConvertToDelta(self, s):
        pieces = [*self.words("CONVERT TO DELTA"), *self.table(s.table)]
        pieces += self.words("" if s.collects_statistics else "NO STATISTICS")
        columns = []
        for column in s.partitioned_by:
            columns += Piece(","), self.name(column.name), Piece(column.type_text.sql)
            columns += self.words("" if column.is_nullable else "NOT NULL")
            if column.comment is not None:
                columns += *self.words("COMMENT"), self.text(column.comment)
        if columns:
            pieces += *self.words("PARTITIONED BY"), Piece("("), *columns[1:], Piece(")")
        return pieces

    def Analyze(self, s):
        words = self.words("COMPUTE DELTA STATISTICS")
        return [*self.words("ANALYZE TABLE"), *self.table(s.table), *words]

    def Restore(self, s):
        words = self.words(self.choose("RESTORE TABLE", "RESTORE"))
        table = [Piece(f"`{s.table.parts[0].replace('`', '``')}`"), *self.table(s.table)[1:]]
        return [*words, *table, *self.words(self.choose("TO", "")), *self.travel(s.travel)]

    def AlterTable(self, s):
        pieces = [*self.words("ALTER TABLE"), *self.table(s.table)]
        return [*pieces, *getattr(self, type(s.change).__name__)(s.change)]

    def AddConstraint(self, s):
        pieces = [*self.words("ADD CONSTRAINT"), self.name(s.name), *self.words("CHECK")]
        return [*pieces, Piece("("), Piece(s.condition), Piece(")")]

    def DropConstraint(self, s):
        if_exists = "IF EXISTS" if s.if_exists else ""
        return [*self.words(f"DROP CONSTRAINT {if_exists}"), self.name(s.name)]

    def DropFeature(self, s):
        name = self.choose(self.name(s.feature), self.text(s.feature))
        words = self.words("TRUNCATE HISTORY" if s.truncates_history else "")
        return [*self.words("DROP FEATURE"), name, *words]

    def ClusterBy(self, s):
        columns = self.columns(s.columns) if s.columns else self.words("NONE")
        return [*self.words("CLUSTER BY"), *columns]

    def SyncIdentity(self, s):
        words = self.words(self.choose("ALTER COLUMN", "CHANGE COLUMN"))
        return [*words, *self.path(s.column), *self.words("SYNC IDENTITY")]

    def Reorg(self, s):
        pieces = [*self.words("REORG TABLE"), *self.table(s.table), *self.where(s.where)]
        pieces += *self.words("APPLY"), Piece("(")
        if s.uniform_version is None:
            return [*pieces, *self.words("PURGE"), Piece(")")]
        pieces += *self.words("UPGRADE UNIFORM"), Piece("("), *self.words("ICEBERG_COMPAT_VERSION")
        return [*pieces, Piece("="), Piece(str(s.uniform_version)), Piece(")"), Piece(")")]

    def Clone(self, s):
        words = {
            CreateMode.CREATE: "CREATE TABLE",
            CreateMode.CREATE_IF_NOT_EXISTS: "CREATE TABLE IF NOT EXISTS",
            CreateMode.REPLACE: "REPLACE TABLE",
            CreateMode.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
        }
        pieces = [*self.words(words[s.mode]), *self.table(s.table)]
        pieces += self.words("SHALLOW CLONE" if s.is_shallow else "DEEP CLONE")
        pieces += *self.table(s.source), *self.travel(s.travel)
        return [*pieces, *self.properties(s), *self.location(s)]

    def CreateLike(self, s):
        words = "CREATE TABLE IF NOT EXISTS" if s.if_not_exists else "CREATE TABLE"
        pieces = [*self.words(words), *self.table(s.table)]
        pieces += *self.words("LIKE"), *self.table(s.source)
        using = [] if s.provider is None else [*self.words("USING"), Piece(s.provider)]
        return [*pieces, *using, *self.location(s), *self.properties(s)]

    def properties(self, s):
        properties = []
        for key, value in s.properties:
            equals = [Piece("=")] if self.choose(True, False) else []
            properties += Piece(","), self.text(key), *equals, self.text(value)
        if not properties:
            return []
        return [*self.words("TBLPROPERTIES"), Piece("("), *properties[1:], Piece(")")]

    def location(self, s):
        return [] if s.location is None else [*self.words("LOCATION"), self.text(s.location)]

    def Delete(self, s):
        pieces = [*self.words("DELETE FROM"), *self.table(s.table), *self.alias(s.alias)]
        return [*pieces, *self.where(s.condition)]

    def Update(self, s):
        pieces = [*self.words("UPDATE"), *self.table(s.table), *self.alias(s.alias)]
        pieces += *self.words("SET"), *self.assignments(s.assignments)
        return [*pieces, *self.where(s.condition)]

    def Merge(self, s):
        evolves = " WITH SCHEMA EVOLUTION" if s.evolves_schema else ""
        pieces = [*self.words(f"MERGE{evolves} INTO"), *self.table(s.table), *self.alias(s.alias)]
        pieces += self.words("USING")
        if isinstance(s.source, ss.SqlText):
            pieces += Piece("("), Piece(s.source.sql), Piece(")")
        else:
            pieces += self.table(s.source)
        pieces += *self.alias(s.source_alias), *self.words("ON"), Piece(s.condition.sql)
        return [*pieces, *(piece for clause in s.clauses for piece in self.clause(clause))]

    def clause(self, clause) -> list[Piece]:
        by_target = (
            " BY TARGET" if clause.kind == "NOT MATCHED" and self.choose(True, False) else ""
        )
        pieces = self.words(f"WHEN {clause.kind}{by_target}")
        if clause.condition is not None:
            pieces += *self.words("AND"), Piece(clause.condition.sql)
        pieces += self.words(f"THEN {clause.action}".upper())
        if clause.action == "update":
            pieces += self.words("SET")
            pieces += [Piece("*")] if clause.values is None else self.assignments(clause.values)
        elif clause.action == "insert" and clause.values is None:
            pieces.append(Piece("*"))
        elif clause.action == "insert":
            pieces += self.columns(item.column for item in clause.values)
            given = [p for item in clause.values for p in (Piece(","), Piece(item.value.sql))]
            pieces += *self.words("VALUES"), Piece("("), *given[1:], Piece(")")
        return pieces
