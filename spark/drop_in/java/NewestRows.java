import java.util.Collections;
import java.util.List;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * The rows of a table of which nobody chose a version: below it are those of the version that was
 * there when the query was analysed, and `NewestVersions` puts newer ones in their place.
 */
public final class NewestRows extends LogicalPlan {
  private final LogicalPlan child;
  private final DeltaTable table;

  public NewestRows(LogicalPlan child, DeltaTable table) {
    this.child = child;
    this.table = table;
  }

  LogicalPlan child() { return this.child; }
  DeltaTable table() { return this.table; }

  public scala.collection.immutable.Seq output() { return this.child.output(); }
  public scala.collection.immutable.Seq children() {
    return Lists.seq(Collections.singletonList(this.child));
  }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new NewestRows((LogicalPlan) children.apply(0), this.table);
  }
  /** To Spark these are the rows of the version; so what is cached of it is found. */
  public QueryPlan doCanonicalize() { return (QueryPlan) this.child.canonicalized(); }

  // The arguments of the constructor, from which Spark makes copies.
  public int productArity() { return 1; }
  public Object productElement(int at) { return this.child; }
  public scala.collection.immutable.Seq otherCopyArgs() {
    List more = new ArrayList();
    more.add(this.table);
    return Lists.seq(more);
  }
  public boolean canEqual(Object other) { return other instanceof NewestRows; }
  public boolean equals(Object other) {
    return other instanceof NewestRows && ((NewestRows) other).table == this.table
        && ((NewestRows) other).child.equals(this.child);
  }
  public int hashCode() { return this.child.hashCode(); }
}
