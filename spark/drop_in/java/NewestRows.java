import java.util.Arrays;
import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The rows of a table of which nobody chose a version: below it are those of the version that was
 * there when the query was analysed.
 *
 * To Spark the rows of all versions are the same, as Delta's are: what is cached of a table is found
 * by every query over it until it is made anew or given back.
 */
public final class NewestRows extends LogicalPlan {
  private final LogicalPlan child;
  private final DeltaTable table;
  private final QueryVersions versions;
  private final int place;

  /**
   * @param versions those of the query that the node stands in; null before a query is prepared
   * @param place the node's place among them
   */
  public NewestRows(LogicalPlan child, DeltaTable table, QueryVersions versions, int place) {
    this.child = child;
    this.table = table;
    this.versions = versions;
    this.place = place;
  }

  LogicalPlan child() { return this.child; }
  DeltaTable table() { return this.table; }
  NewestRows in(QueryVersions query, int at) {
    return new NewestRows(this.child, this.table, query, at);
  }
  /** The rows of the version that the query reads. */
  LogicalPlan chosen(SparkSession session) {
    QueryVersions query = this.versions == null
        ? new QueryVersions(session, Collections.singletonList(this)) : this.versions;
    LogicalPlan newer = query.newer(this.place);
    return newer == null ? this.child : RelationRule.withAttributes(newer, output());
  }

  /** The columns' names as one text, since Python pays for each element of an array. */
  String names() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < output().length(); i++) {
      text.append(i == 0 ? "" : "\0").append(((Attribute) output().apply(i)).name());
    }
    return text.toString();
  }

  public scala.collection.immutable.Seq output() { return this.child.output(); }
  /** All columns are needed until the version is chosen, or Spark leaves some out below. */
  public AttributeSet references() { return this.child.outputSet(); }
  public scala.collection.immutable.Seq children() {
    return Lists.seq(Collections.singletonList(this.child));
  }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new NewestRows((LogicalPlan) children.apply(0), this.table, this.versions, this.place);
  }
  public QueryPlan doCanonicalize() { return new AnyVersion(this.table.identity(), output()); }

  // The arguments of the constructor, from which Spark makes copies.
  public int productArity() { return 1; }
  public Object productElement(int at) { return this.child; }
  public scala.collection.immutable.Seq otherCopyArgs() {
    return Lists.seq(
        Arrays.asList(new Object[] {this.table, this.versions, Integer.valueOf(this.place)}));
  }
  public boolean canEqual(Object other) { return other instanceof NewestRows; }
  public boolean equals(Object other) {
    return other instanceof NewestRows && ((NewestRows) other).table == this.table
        && ((NewestRows) other).versions == this.versions
        && ((NewestRows) other).place == this.place
        && ((NewestRows) other).child.equals(this.child);
  }
  public int hashCode() { return this.child.hashCode(); }
}
