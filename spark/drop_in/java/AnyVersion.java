import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** What Spark compares of `NewestRows`: which table, and its columns with all that Spark is told. */
public final class AnyVersion extends LogicalPlan {
  private final String compared;
  private final scala.collection.immutable.Seq output;

  public AnyVersion(String table, scala.collection.immutable.Seq output) {
    StringBuilder text = new StringBuilder(table);
    for (int i = 0; i < output.length(); i++) {
      Attribute one = (Attribute) output.apply(i);
      text.append('\0').append(one.name()).append('\0').append(one.nullable())
          .append(one.dataType().json());
    }
    this.compared = text.toString();
    this.output = output;
  }

  public scala.collection.immutable.Seq output() { return this.output; }
  public scala.collection.immutable.Seq children() { return Lists.seq(Collections.emptyList()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return this;
  }

  public int productArity() { return 1; }
  public Object productElement(int at) { return this.compared; }
  public boolean canEqual(Object other) { return other instanceof AnyVersion; }
  public boolean equals(Object other) {
    return other instanceof AnyVersion && ((AnyVersion) other).compared.equals(this.compared);
  }
  public int hashCode() { return this.compared.hashCode(); }
}
