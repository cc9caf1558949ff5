import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;

/** A table as the source of one query: Python has the stream, offsets are its texts. */
public final class DeltaSource
    implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final scala.Function2 python;
  private final SparkSession session;
  private final String name;
  private final StructType schema;

  public DeltaSource(scala.Function2 python, SparkSession session, String name, StructType schema) {
    this.python = python;
    this.session = session;
    this.name = name;
    this.schema = schema;
  }

  private Object ask(String what, Object argument) {
    return Python.thrownIfError(this.python.apply(what, argument));
  }
  private static String json(Object offset) {
    return offset == null
        ? null : ((org.apache.spark.sql.connector.read.streaming.Offset) offset).json();
  }
  private static Offset offset(Object json) {
    return json == null ? null : new DeltaOffset((String) json);
  }

  public StructType schema() { return this.schema; }
  public String toString() { return "DeltaSource[" + this.name + "]"; }
  public scala.Option getOffset() { return scala.Option.apply(null); }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) {
    return offset(json);
  }

  /** Only tells Spark that there is a limit; Python knows the number. */
  public ReadLimit getDefaultReadLimit() { return ReadLimit.maxFiles(1); }
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    boolean isAll = limit instanceof ReadAllAvailable;
    return offset(ask("latest", new Object[] {json(start), Boolean.valueOf(isAll)}));
  }
  public void prepareForTriggerAvailableNow() { ask("prepare", null); }
  public Map metrics(Optional latest) { return (Map) ask("metrics", json(latest.orElse(null))); }
  /** A batch is recorded for good; the stream may stop here, so that it goes on otherwise. */
  public void commit(Offset end) { ask("done", json(end)); }
  public void stop() { ask("stop", null); }

  public Dataset getBatch(scala.Option start, Offset end) {
    // When a query goes on, Spark asks for the batch that it has done already and drops it.
    if (isCalledBy("populateStartOffsets")) return nothing();
    Object before = start.isDefined() ? start.get() : null;
    Object rows = ask("batch", new Object[] {json(before), json(end)});
    return streaming((org.apache.spark.sql.classic.Dataset) rows);
  }
  private Dataset nothing() {
    return this.session.internalCreateDataFrame(
        this.session.sparkContext().emptyRDD(scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class)),
        this.schema, true);
  }

  /** The same rows as Spark wants them from a source: all leaves of the plan have to say so. */
  private Dataset streaming(org.apache.spark.sql.classic.Dataset rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    scala.collection.immutable.Seq leaves = plan.collectLeaves();
    for (int i = 0; i < leaves.length(); i++) {
      if (!(leaves.apply(i) instanceof LogicalRelation)) {
        return this.session.internalCreateDataFrame(
            rows.queryExecution().toRdd(), rows.schema(), true);
      }
    }
    final DeltaSource source = this;
    LogicalPlan marked = (LogicalPlan) plan.transformDown(
        new scala.runtime.AbstractPartialFunction() {
          public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation && !((LogicalRelation) node).isStreaming();
          }
          public Object applyOrElse(Object node, scala.Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            LogicalPlan relation = RelationRule.with((LogicalPlan) node, 3, Boolean.TRUE);
            return ((LogicalRelation) relation).withStream(source);
          }
        });
    return org.apache.spark.sql.classic.Dataset.ofRows(this.session, marked);
  }

  private static boolean isCalledBy(String method) {
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if (calls[i].getMethodName().contains(method)) return true;
    }
    return false;
  }
}
