import java.util.Arrays;
import java.util.Collections;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkStrategy;

/**
 * The few rows that the log gave as the answer to a query.
 *
 * It remembers the query: where Spark caches the answer, its tables are found here (`sources.py`).
 */
public final class AnsweredRows extends LogicalPlan implements LeafNode {
  private final LogicalPlan rows;
  private final LogicalPlan query;

  public AnsweredRows(LogicalPlan rows, LogicalPlan query) {
    this.rows = rows;
    this.query = query;
  }

  LogicalPlan rows() { return this.rows; }
  public LogicalPlan query() { return this.query; }

  public scala.collection.immutable.Seq output() { return this.rows.output(); }
  public scala.collection.immutable.Seq children() { return Lists.seq(Collections.emptyList()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return this;
  }
  public Statistics computeStats() { return this.rows.stats(); }
  public scala.Option maxRows() { return this.rows.maxRows(); }

  // The arguments of the constructor, from which Spark makes copies.
  public int productArity() { return 0; }
  public Object productElement(int at) { throw new IndexOutOfBoundsException(); }
  public scala.collection.immutable.Seq otherCopyArgs() {
    return Lists.seq(Arrays.asList(new Object[] {this.rows, this.query}));
  }
  public boolean canEqual(Object other) { return other instanceof AnsweredRows; }
  public boolean equals(Object other) {
    return other instanceof AnsweredRows && ((AnsweredRows) other).rows().equals(this.rows);
  }
  public int hashCode() { return this.rows.hashCode(); }

  /** How Spark plans such rows: as any others. */
  static final class Planned extends SparkStrategy {
    public scala.collection.immutable.Seq apply(LogicalPlan plan) {
      return Lists.seq(plan instanceof AnsweredRows
          ? Collections.singletonList(planLater(((AnsweredRows) plan).rows()))
          : Collections.emptyList());
    }
  }
}
