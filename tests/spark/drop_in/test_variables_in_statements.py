"""`${...}` in statements of ours means what Spark's own parser makes of it."""

from __future__ import annotations

import pytest
from pyspark.errors import ParseException

from optimist.core.errors import UsageError


@pytest.fixture
def table(enabled, path, conf):
    """A table of two versions, named by variables; `${hours}` and `${key}` have values, too."""
    enabled.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    conf("x.path", path)
    conf("hours", "168")
    conf("key", "id")
    return "delta.`${x.path}`"


def versions(enabled, path):
    return enabled.sql(f"DESCRIBE HISTORY delta.`{path}`").count()


@pytest.mark.again
def test_variables_stand_anywhere_in_a_statement_of_ours(enabled, table, path, conf):
    conf("what", f"OPTIMIZE {table}")
    for text in (
        f"VACUUM {table} RETAIN ${{hours}} HOURS DRY RUN",
        f"OPTIMIZE {table} ZORDER BY (${{key}})",
        f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (${{spark:key}} < ${{hiveconf:hours}})",
        f"ALTER TABLE {table} DROP CONSTRAINT c",
        f"DESCRIBE HISTORY {table} LIMIT ${{hivevar:hours}}",
        "DESCRIBE DETAIL '${sparkconf:x.path}'",
        f"RESTORE {table} TO VERSION AS OF 1",
        f"CREATE TABLE delta.`{path}_clone` SHALLOW CLONE {table}",
        f"CREATE TABLE delta.`{path}_like` LIKE {table}",
        "${what}",
    ):
        enabled.sql(text).collect()
    assert versions(enabled, path) == 7
    assert enabled.sql("DESCRIBE DETAIL delta.`${x.path}_clone`").collect()[0].location


def test_parts_of_the_environment_and_of_the_jvm_are_put_in(enabled, path, conf):
    for kind, name in {"env": "PATH", "system": "java.io.tmpdir"}.items():
        of_spark = enabled.sql(f"SELECT r'${{{kind}:{name}}}' AS value").collect()[0].value
        assert of_spark
        condition = f"r'${{{kind}:{name}}}' != CAST(id AS STRING)"
        enabled.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT {kind} CHECK ({condition})")
        shown = enabled.sql(f"SHOW TBLPROPERTIES delta.`{path}`").collect()
        kept = {row.key: row.value for row in shown}[f"delta.constraints.{kind}"]
        assert kept == f"'{of_spark}' != CAST(id AS STRING)"


def test_what_has_no_value_stays_as_it_is(enabled, table, path, conf):
    with pytest.raises(ParseException, match="hours"):
        enabled.sql(f"VACUUM delta.`{path}` RETAIN ${{no.such.conf}} HOURS")
    conf("spark.sql.variable.substitute", "false")
    with pytest.raises((UsageError, ParseException)):
        enabled.sql(f"VACUUM delta.`{path}` RETAIN ${{hours}} HOURS")
