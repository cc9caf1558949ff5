"""Tables whose logs hold SQL that a writer's Spark must not run, and SQL that it must."""

from __future__ import annotations

import json
from pathlib import Path

from foreign_tables import field
from optimist.core import DeltaLog
from optimist.core.protocol.actions import Metadata
from optimist.core.transaction.conflicts.operations import Operation

__all__ = [
    "CALL",
    "CANARY",
    "DANGEROUS",
    "FORBIDDEN",
    "PLACES",
    "SECRET",
    "USUAL",
    "USUAL_COLUMNS",
    "add_constraint",
    "field",
    "make_table",
    "table_with",
]

CANARY = "optimist.canary"
SECRET = "the canary sings"
CALL = f"reflect('java.lang.System', 'setProperty', '{CANARY}', 'touched')"
FORBIDDEN = {
    "reflection": CALL,
    "reflection by its other name": CALL.replace("reflect", "java_method"),
    "reflection that tries": CALL.replace("reflect", "try_reflect"),
    "reflection in quotes": CALL.replace("reflect", "`reflect`"),
    "reflection by its full name": f"system.builtin.{CALL}",
    "reflection where Spark needs a constant early": f"from_json(x, {CALL}).a",
    "reflection in a lambda": f"transform(array(1), i -> {CALL})[0]",
    "reflection by a computed name": CALL.replace("reflect", "identifier('ref' || 'lect')"),
    "environment": "'${env:OPTIMIST_CANARY}'",
    "system property": "'${system:optimist.secret}'",
    "subquery": "(SELECT max(value) FROM text.`{file}`)",
    "subquery without SELECT": "(FROM text.`{file}` |> LIMIT 1)",
    "set of a subquery": "x IN (SELECT value FROM text.`{file}`)",
    "existence": "EXISTS (SELECT value FROM text.`{file}`)",
    "user's function": "of_the_user(x)",
    "random": "rand()",
    "new every time": "uuid()",
    "number of the row": "monotonically_increasing_id()",
    "file of the row": "input_file_name()",
    "hidden column": "_metadata.file_path",
    "user": "current_user()",
    "user, bare": "session_user",
    "place": "current_database()",
    "session variable": "of_the_session",
    "aggregate": "max(x)",
    "window": "row_number() OVER (ORDER BY id)",
    "generator": "explode(array(x))",
    "all columns": "hash(*)",
    "pipeline's parameter": ":x",
    "two names": "x AS y",
    "no SQL": "x +",
    "column that does not exist": "nope",
}
_DANGEROUS = """
    reflect java_method try_reflect input_file_name input_file_block_start input_file_block_length
    current_user session_user user current_database current_schema current_catalog version
    monotonically_increasing_id spark_partition_id rand randn random randstr uniform uuid shuffle
    raise_error assert_true from_avro to_avro schema_of_avro from_protobuf to_protobuf
    from_xml schema_of_xml to_xml xpath xpath_string xpath_boolean aes_encrypt aes_decrypt
    current_timezone window session_window explode stack sum count collect_list row_number lag
"""
DANGEROUS = frozenset(_DANGEROUS.split())
USUAL = [
    "CAST(x AS INT)",
    "try_cast(x AS DOUBLE)",
    "ts::DATE",
    "id * 2 + 1 - id / 3 % 4",
    "-id DIV 2",
    "pmod(id, 10) + abs(id) + round(d, 1) + floor(d) + ceil(d) + bround(d)",
    "year(ts) * 10000 + month(ts) * 100 + day(ts)",
    "CAST(ts AS DATE)",
    "date_format(ts, 'yyyy-MM')",
    "trunc(ts, 'MM')",
    "date_trunc('HOUR', ts)",
    "extract(DAY FROM ts) + hour(ts) + minute(ts) + second(ts) + dayofweek(ts)",
    "date_add(to_date(ts), 1)",
    "ts + INTERVAL 1 DAY",
    "timestampadd(HOUR, 1, ts)",
    "datediff(ts, DATE '2020-01-01')",
    "to_date(date_format(ts, 'yyyy-MM-dd'), 'yyyy-MM-dd')",
    "from_unixtime(id)",
    "unix_timestamp(ts)",
    "substring(x, 1, 3)",
    "substring(x FROM 1 FOR 3)",
    "trim(BOTH 'x' FROM x)",
    "concat(x, '-', id) || upper(lower(x))",
    "concat_ws(',', x, s.name)",
    "coalesce(x, nvl(s.name, ifnull(x, nullif(x, ''))))",
    "CASE WHEN id > 0 THEN 'p' WHEN id < 0 THEN 'n' ELSE 'z' END",
    "CASE x WHEN 'a' THEN 1 END",
    "if(id > 0, 1, 0)",
    "x IN ('a', 'b') AND id BETWEEN 1 AND 5 OR NOT id <=> 7",
    "x LIKE 'a%' OR x RLIKE '^a+$' OR x ILIKE 'A_' OR x LIKE ANY ('a%', 'b%')",
    "regexp_replace(regexp_extract(x, '(a)(b)', 1), 'a', 'b')",
    "x IS NOT NULL AND d IS NOT DISTINCT FROM 1.5 AND NOT isnan(d)",
    "s.name",
    "s['name']",
    "a[0] + element_at(a, 1) + size(a)",
    "m['k'] + size(map_keys(m))",
    "array_contains(a, 1) AND exists(a, i -> i > id)",
    "aggregate(transform(a, i -> i + id), 0L, (acc, i) -> acc + i)",
    "named_struct('n', x).n || struct(x, id).x",
    "get_json_object(x, '$.a.b')",
    "from_json(x, 'a INT').a",
    "to_json(s)",
    "hash(x, id) + xxhash64(x) + crc32(x)",
    "md5(x) || sha1(x) || sha2(x, 256)",
    "lpad(x, 5, '0') || rpad(x, 5) || reverse(x) || replace(x, 'a', 'b')",
    "split(x, ',')[0] || split_part(x, ',', 1)",
    "greatest(id, 1) + least(id, 2) + length(x) + ascii(x) + instr(x, 'a')",
    "`x y` + 1",
    "ts <= current_timestamp() AND current_date >= DATE'2020-01-01'",
    "x = \"double\" OR x = r'raw\\n'",
]


def make_table(path, fields, configuration=None, partition_columns=()):
    """A table without rows, as whoever writes into its folder makes it."""
    txn = DeltaLog.for_path(path, {}).start_transaction()
    names = ("allowColumnDefaults", "checkConstraints", "generatedColumns", "invariants")
    txn.update_metadata(
        Metadata(
            id="00000000-0000-0000-0000-000000000001",
            schema_string=json.dumps({"type": "struct", "fields": [field("id", "long")]}),
            configuration={f"delta.feature.{name}": "supported" for name in names},
        )
    )
    txn.commit([], Operation("CREATE TABLE"))
    overwrite_metadata(path, fields, configuration or {}, partition_columns)


def overwrite_metadata(path, fields, configuration, partition_columns):
    """Past our own checks: other engines do not have them."""
    first = Path(path) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.dumps({"type": "struct", "fields": fields})
            action["metaData"] |= {
                "schemaString": schema,
                "configuration": configuration,
                "partitionColumns": list(partition_columns),
            }
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()


COLUMNS = [field("id", "long"), field("x", "string")]
USUAL_COLUMNS = [
    *COLUMNS,
    field("d", "double"),
    field("ts", "timestamp"),
    field("s", {"type": "struct", "fields": [field("name", "string")]}),
    field("a", {"type": "array", "elementType": "long", "containsNull": True}),
    field(
        "m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    ),
    field("x y", "long"),
]


def add_constraint(path, version, sql):
    """A commit by which the table gets a CHECK constraint, past our own checks."""
    log = Path(path) / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    (metadata,) = (json.loads(line) for line in lines if "metaData" in line)
    metadata["metaData"]["configuration"] = {"delta.constraints.odd": sql}
    (log / f"{version:020}.json").write_text(json.dumps(metadata) + "\n")


def table_with(path, place, sql):
    """A table in whose log the text stands at one of the places that Spark evaluates."""
    if place == "check":
        make_table(path, COLUMNS, {"delta.constraints.odd": f"({sql}) IS NOT NULL"})
    elif place == "invariant":
        text = json.dumps({"expression": {"expression": f"({sql}) IS NOT NULL"}})
        make_table(path, [COLUMNS[0], field("x", "string", **{"delta.invariants": text})])
    elif place == "default":
        make_table(path, [*COLUMNS, field("made", "string", CURRENT_DEFAULT=sql)])
    elif place == "nested default":
        inner = {"type": "struct", "fields": [field("a", "long"), field("b", "string")]}
        inner["fields"][1]["metadata"] = {"CURRENT_DEFAULT": sql}
        make_table(path, [*COLUMNS, field("s", inner)])
    else:
        made = {"delta.generationExpression": sql}
        make_table(path, [*COLUMNS, field("made", "string", **made)])


PLACES = ("check", "invariant", "default", "nested default", "generated")
