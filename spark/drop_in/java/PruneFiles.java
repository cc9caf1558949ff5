import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonFuncExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Tells Spark how much is left of a table once its filters are known, before joins are chosen.
 *
 * Which filters those are is asked of the strategy by which Spark itself plans the scan later: so
 * they are the same, and what is found for them now is found then.
 */
public final class PruneFiles extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transformDown(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return isFilteredTable(node); }
      public Object applyOrElse(Object node, scala.Function1 other) {
        return isFilteredTable(node) ? pruned((Filter) node) : other.apply(node);
      }
    });
  }

  private static boolean isFilteredTable(Object node) {
    if (!(node instanceof Filter) || !(((Filter) node).child() instanceof LogicalRelation)) {
      return false;
    }
    FileIndex files = files((Filter) node);
    return files != null && !(files instanceof PrunedFiles)
        && files.toString().startsWith("optimist:");
  }
  private static FileIndex files(Filter filter) {
    Object relation = ((LogicalRelation) filter.child()).relation();
    return relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : null;
  }

  /** Where it can't be told what is left, the query finds out why when it runs. */
  private LogicalPlan pruned(Filter filter) {
    FileSourceScanExec scan = scan(filter);
    if (scan == null) return filter;
    LogicalRelation table = (LogicalRelation) filter.child();
    HadoopFsRelation whole = (HadoopFsRelation) table.relation();
    FileIndex left;
    try {
      left = new PrunedFiles(whole.location(), known(scan.partitionFilters()), scan.dataFilters());
    } catch (RuntimeException error) {
      return filter;
    }
    HadoopFsRelation relation = new HadoopFsRelation(left, whole.partitionSchema(),
        whole.dataSchema(), whole.bucketSpec(), whole.fileFormat(), whole.options(),
        whole.sparkSession());
    LogicalPlan rest = RelationRule.with(table, 0, relation);
    return (LogicalPlan) filter.withNewChildren(Lists.seq(Collections.singletonList(rest)));
  }
  /** The filters that can be evaluated before the query runs. */
  private static scala.collection.immutable.Seq known(scala.collection.immutable.Seq filters) {
    List found = new ArrayList();
    for (int i = 0; i < filters.length(); i++) {
      Expression filter = (Expression) filters.apply(i);
      if (!SubqueryExpression$.MODULE$.hasSubquery(filter) && !callsPython(filter)) {
        found.add(filter);
      }
    }
    return Lists.seq(found);
  }
  private static boolean callsPython(Expression filter) {
    return filter.exists(new scala.runtime.AbstractFunction1() {
      public Object apply(Object part) {
        return Boolean.valueOf(part instanceof PythonFuncExpression);
      }
    });
  }
  private static FileSourceScanExec scan(Filter filter) {
    scala.collection.immutable.Seq plans = FileSourceStrategy$.MODULE$.apply(filter);
    if (plans.isEmpty()) return null;
    scala.collection.immutable.Seq leaves = ((SparkPlan) plans.head()).collectLeaves();
    Object leaf = leaves.head();
    return leaf instanceof FileSourceScanExec ? (FileSourceScanExec) leaf : null;
  }
}
