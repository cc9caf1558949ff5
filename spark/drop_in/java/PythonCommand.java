import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.types.StructType;

/**
 * A command whose rows a Python function makes, when Spark runs it and not before: a statement may
 * be parsed, explained and prepared any number of times.
 */
public final class PythonCommand extends LogicalPlan implements LeafRunnableCommand {
  private final String title;
  private final scala.Function1 python;
  private final scala.collection.immutable.Seq output;

  /** @param python takes the Java session and answers a list of rows, or null for none */
  public PythonCommand(String title, scala.Function1 python, StructType schema) {
    this(title, python, DataTypeUtils.toAttributes(schema));
  }
  public PythonCommand(
      String title, scala.Function1 python, scala.collection.immutable.Seq output) {
    this.title = title;
    this.python = python;
    this.output = output;
  }

  public scala.collection.immutable.Seq run(org.apache.spark.sql.SparkSession session) {
    Object rows = Python.thrownIfError(this.python.apply(session));
    return Lists.seq(rows == null ? Collections.emptyList() : (List) rows);
  }

  public scala.collection.immutable.Seq output() { return this.output; }
  public scala.collection.immutable.Seq children() { return Lists.seq(Collections.emptyList()); }
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return this;
  }
  public scala.collection.immutable.Seq nodePatterns() {
    List patterns = new ArrayList();
    patterns.add(TreePattern.COMMAND());
    return Lists.seq(patterns);
  }
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.immutable.Seq patterns) {}

  // The arguments of the second constructor, from which Spark makes copies.
  public int productArity() { return 1; }
  public Object productElement(int at) { return this.title; }
  public scala.collection.immutable.Seq otherCopyArgs() {
    List more = new ArrayList();
    more.add(this.python);
    more.add(this.output);
    return Lists.seq(more);
  }
  public boolean canEqual(Object other) { return other instanceof PythonCommand; }
  public boolean equals(Object other) { return this == other; }
  public int hashCode() { return System.identityHashCode(this); }
}
