"""`enable` and `disable`: twice, undone, for new sessions and clones; never beside Delta's jar."""

from __future__ import annotations

import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.errors import ConfigError, TableNotFoundError
from optimist.spark import disable, enable
from optimist.spark.drop_in import session_state

_CATALOG = "spark.sql.catalog.spark_catalog"


def _rules(spark):
    analyzer = spark._jsparkSession.sessionState().analyzer()
    names = [rule.ruleName() for rule in _listed(analyzer.extendedResolutionRules())]
    return [name for name in names if "optimist" in name]


def _listed(sequence):
    return [sequence.apply(at) for at in range(sequence.length())]


def test_enabling_twice_changes_nothing_more(enabled, table):
    parser = enabled._jsparkSession.sessionState().sqlParser()
    assert enable(enabled) is enabled
    assert enabled._jsparkSession.sessionState().sqlParser().hashCode() == parser.hashCode()
    assert len(_rules(enabled)) == 1
    assert enabled.table(f"delta.`{table}`").count() == 20


@pytest.mark.again
def test_threads_that_begin_a_session_together_wait_for_its_catalogs(enabled, table):
    for _ in range(6):
        session, start = enabled.newSession(), threading.Barrier(6)

        def first_statement(session=session, start=start):
            start.wait()
            return session.sql(f"SELECT id FROM delta.`{table}`").columns

        with ThreadPoolExecutor(6) as threads:
            waiting = [threads.submit(first_statement) for _ in range(6)]
            assert [one.result() for one in waiting] == [["id"]] * 6


@pytest.mark.again
@pytest.mark.parametrize("first", ["sql", "table", "load", "list", "exists"])
def test_a_new_session_is_served_whatever_it_does_first(enabled, table, first):
    session = enabled.newSession()
    if first == "sql":
        assert session.sql(f"SELECT * FROM delta.`{table}`").count() == 20
    elif first == "table":
        assert session.table(f"delta.`{table}`").count() == 20
    elif first == "load":
        assert session.read.format("delta").load(table).count() == 20
    elif first == "list":
        session.catalog.listTables()
    else:
        assert session.catalog.tableExists(f"delta.`{table}`")
    assert session.sql(f"SELECT id FROM delta.`{table}` VERSION AS OF 0").count() == 20


def test_errors_keep_their_class_once_other_sessions_are_made(enabled, tmp_path):
    session = enabled.newSession()
    with pytest.raises(TableNotFoundError):
        session.sql(f"SELECT * FROM delta.`{tmp_path}/nothing`")


def test_a_clone_is_served(enabled, table):
    clone = SparkSession(enabled.sparkContext, enabled._jsparkSession.cloneSession())
    assert clone.catalog.listTables() == enabled.catalog.listTables()
    assert clone.sql(f"SELECT * FROM delta.`{table}`").count() == 20
    assert clone.sql("EXECUTE IMMEDIATE 'SELECT 1'").count() == 1


@pytest.mark.again
def test_frames_of_rdds_stay_in_the_session_of_the_user(enabled, table):
    """Spark plans what it caches in a clone, which gets a Python session of its own."""
    rows = enabled.sparkContext.parallelize([(1, "a")])
    kept = rows.toDF(["n", "s"])
    cached = enabled.sql(f"SELECT * FROM delta.`{table}`").cache()
    assert cached.count() == 20
    found = rows.toDF(["n", "s"])
    assert found.sparkSession is kept.sparkSession
    found.createOrReplaceTempView("of_rdd")
    user = kept.sparkSession  # the one made last, which other tests may have done
    assert user.table("of_rdd").collect() == [(1, "a")]
    user.catalog.dropTempView("of_rdd")
    cached.unpersist()


def test_disabling_puts_everything_back(enabled, table):
    disable(enabled)
    catalog = enabled.conf.get(_CATALOG, None)
    enable(enabled)
    assert enabled.conf.get(_CATALOG, None) != catalog
    disable(enabled)
    disable(enabled)
    assert enabled.conf.get(_CATALOG, None) == catalog
    assert _rules(enabled) == []
    assert enabled.sql("SELECT 1").count() == 1
    for session in (enabled, enabled.newSession()):
        with pytest.raises(AnalysisException):
            session.sql(f"SELECT * FROM delta.`{table}`")
    enable(enabled)
    assert enabled.table(f"delta.`{table}`").count() == 20


@pytest.mark.again
def test_other_sessions_and_frames_go_on_when_one_is_disabled(enabled, table, tmp_path):
    other = enabled.newSession()
    assert other.table(f"delta.`{table}`").count() == 20
    frame = enabled.read.format("delta").load(table)
    frame.createOrReplaceTempView("rows_of_a_frame")
    cached = frame.where("id < 5").cache()
    assert cached.count() == 5
    disable(enabled)
    other.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    assert (frame.count(), enabled.table("rows_of_a_frame").count(), cached.count()) == (19, 19, 4)
    cached.unpersist()
    with pytest.raises(TableNotFoundError):
        other.sql(f"SELECT * FROM delta.`{tmp_path}/nothing`")
    enable(enabled)
    enabled.catalog.dropTempView("rows_of_a_frame")


def test_a_session_with_deltas_jar_is_refused(spark, monkeypatch):
    monkeypatch.setattr(session_state, "_JAR_CLASSES", ("org.apache.spark.sql.Dataset",))
    with pytest.raises(ConfigError) as caught:
        session_state.ensure_no_delta_jar(session_state.Jvm.of(spark))
    assert caught.value.kind == "OPTIMIST_DELTA_JAR_PRESENT"


def test_a_spark_with_another_inside_is_refused(spark):
    jvm = session_state.Jvm.of(spark)
    missing = jvm.root.java.lang.NoSuchFieldException("SessionState.sqlParser")

    def fail():
        raise Py4JJavaError("", missing)

    with pytest.raises(ConfigError, match=r"SessionState\.sqlParser") as caught:
        session_state._changed(fail)
    assert caught.value.kind == "OPTIMIST_DROP_IN_UNSUPPORTED"


_FOREIGN = """
package foreign;
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
public class Catalog extends DelegatingCatalogExtension implements StagingTableCatalog {
  public static int staged = 0;
  public static class Own implements Table {
    public String name() { return "own"; }
    public StructType schema() { return new StructType().add("x", "int"); }
    public Set capabilities() { return new HashSet(); }
  }
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return ident.name().equals("own") ? new Own() : super.loadTable(ident);
  }
  public StagedTable stageCreate(Identifier i, Column[] c, Transform[] p, Map m) {
    staged++;
    throw new UnsupportedOperationException("staged there");
  }
  public StagedTable stageReplace(Identifier i, Column[] c, Transform[] p, Map m) {
    return stageCreate(i, c, p, m);
  }
  public StagedTable stageCreateOrReplace(Identifier i, Column[] c, Transform[] p, Map m) {
    return stageCreate(i, c, p, m);
  }
}
"""


@pytest.fixture
def foreign(spark, tmp_path):
    """A session whose catalog is of a class of somebody else, and that is not enabled yet."""
    jvm = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(8)
    compiler.cook(_FOREIGN)
    found = compiler.getBytecodes()
    with zipfile.ZipFile(tmp_path / "foreign.jar", "w") as jar:
        for name in found:
            jar.writestr(f"{name.replace('.', '/')}.class", bytes(found.get(name)))
    loader.addURL(jvm.java.io.File(str(tmp_path / "foreign.jar")).toURI().toURL())
    session = spark.newSession()
    disable(session)
    session.conf.set(_CATALOG, "foreign.Catalog")
    yield session
    disable(session)


@pytest.mark.again
def test_a_session_catalog_of_somebody_else_keeps_its_tables(foreign, tmp_path):
    enable(foreign)
    (row,) = foreign.sql("DESCRIBE own").collect()
    assert row.col_name == "x"
    foreign.sql(f"CREATE TABLE ours (id INT) USING delta LOCATION '{tmp_path}/ours'")
    foreign.sql("INSERT INTO ours VALUES (1)")
    assert foreign.sql("SELECT * FROM ours").count() == 1
    with pytest.raises(Exception, match="staged there"):
        foreign.sql("CREATE TABLE theirs USING noop AS SELECT 1 AS a")
    foreign.sql("DROP TABLE ours")
    disable(foreign)
    assert foreign.conf.get(_CATALOG) == "foreign.Catalog"
    assert foreign.sql("DESCRIBE own").count() == 1


@pytest.mark.again
def test_a_session_catalog_that_is_not_there_is_refused(foreign):
    foreign.conf.set(_CATALOG, "org.apache.iceberg.spark.SparkSessionCatalog")
    session = foreign.newSession()
    disable(session)
    session.conf.set(_CATALOG, "org.apache.iceberg.spark.SparkSessionCatalog")
    with pytest.raises(ConfigError, match="SparkSessionCatalog") as caught:
        enable(session)
    assert caught.value.kind == "OPTIMIST_DROP_IN_UNSUPPORTED"
    assert _rules(session) == []
    session.conf.unset(_CATALOG)
    enable(session)
    disable(session)
