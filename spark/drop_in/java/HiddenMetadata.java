import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.ExposesMetadataColumns;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Rows whose last column, `_metadata`, is there for queries that name it.
 *
 * Spark hides columns by a tag on a projection, which keeps its attribute when Spark gives new ones
 * to the second of two equal sides of a join. Here the attribute is always the child's own.
 */
public final class HiddenMetadata extends LogicalPlan implements ExposesMetadataColumns {
  private final LogicalPlan child;
  private final boolean isShown;

  public HiddenMetadata(LogicalPlan child, boolean isShown) {
    this.child = child;
    this.isShown = isShown;
  }

  /** What Spark plans in the end. */
  LogicalPlan projection() { return new Project(output(), this.child); }

  public scala.collection.immutable.Seq output() {
    scala.collection.immutable.Seq all = this.child.output();
    return this.isShown ? all : (scala.collection.immutable.Seq) all.init();
  }
  public scala.collection.immutable.Seq metadataOutput() {
    return Lists.seq(this.isShown
        ? Collections.EMPTY_LIST : Collections.singletonList(this.child.output().last()));
  }
  public LogicalPlan withMetadataColumns() { return new HiddenMetadata(this.child, true); }
  /** All columns are needed until it is a projection, or Spark leaves some out below. */
  public AttributeSet references() { return this.child.outputSet(); }

  public scala.collection.immutable.Seq children() {
    return Lists.seq(Collections.singletonList(this.child));
  }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new HiddenMetadata((LogicalPlan) children.apply(0), this.isShown);
  }

  // The arguments of the constructor, from which Spark makes copies.
  public int productArity() { return 2; }
  public Object productElement(int at) {
    return at == 0 ? (Object) this.child : Boolean.valueOf(this.isShown);
  }
  public boolean canEqual(Object other) { return other instanceof HiddenMetadata; }
  public boolean equals(Object other) {
    return other instanceof HiddenMetadata && ((HiddenMetadata) other).isShown == this.isShown
        && ((HiddenMetadata) other).child.equals(this.child);
  }
  public int hashCode() { return this.child.hashCode(); }
}
