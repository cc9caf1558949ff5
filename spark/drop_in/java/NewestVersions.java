import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CacheManager;

/**
 * Puts the newest version of each table in place of `NewestRows`, before a query is optimised. All
 * of a query's references to a table get the same version.
 *
 * What Spark has cached stays: cached rows are those of the version that was analysed.
 */
public final class NewestVersions extends Rule {
  private final SparkSession session;

  public NewestVersions(SparkSession session) { this.session = session; }

  public TreeNode apply(TreeNode plan) {
    LogicalPlan given = (LogicalPlan) plan;
    if (found(given).isEmpty()) return given;
    LogicalPlan uncached = withoutCached(given);
    List nodes = found(uncached);
    return nodes.isEmpty() ? uncached : replaced(uncached, newest(nodes));
  }

  private static List found(LogicalPlan plan) {
    final List nodes = new ArrayList();
    plan.foreachWithSubqueries(new scala.runtime.AbstractFunction1() {
      public Object apply(Object node) {
        if (node instanceof NewestRows) nodes.add(node);
        return null;
      }
    });
    return nodes;
  }

  /** The rows of each node: newer ones as Python gives them, or those that the node has. */
  private Map newest(List nodes) {
    Object[] tables = new Object[nodes.size()];
    Object[] names = new Object[nodes.size()];
    for (int i = 0; i < tables.length; i++) {
      tables[i] = ((NewestRows) nodes.get(i)).table();
      names[i] = names((NewestRows) nodes.get(i));
    }
    List plans = (List) Python.ask("newest", this.session, tables, names);
    Map rows = new IdentityHashMap();
    for (int i = 0; i < tables.length; i++) {
      NewestRows node = (NewestRows) nodes.get(i);
      Object plan = plans.get(i);
      rows.put(node, plan == null
          ? node.child() : RelationRule.withAttributes((LogicalPlan) plan, node.output()));
    }
    return rows;
  }
  /** One text, since Python pays for each element of an array. */
  private static String names(NewestRows node) {
    StringBuilder text = new StringBuilder();
    scala.collection.immutable.Seq output = node.output();
    for (int i = 0; i < output.length(); i++) {
      text.append(i == 0 ? "" : "\0").append(((Attribute) output.apply(i)).name());
    }
    return text.toString();
  }

  private static LogicalPlan replaced(LogicalPlan plan, final Map rows) {
    return (LogicalPlan) plan.transformDownWithSubqueries(new Nodes() {
      Object replaced(LogicalPlan node) { return rows.get(node); }
    });
  }
  private static LogicalPlan withoutNodes(LogicalPlan plan) {
    return (LogicalPlan) plan.transformDownWithSubqueries(new Nodes() {
      Object replaced(LogicalPlan node) {
        return node instanceof NewestRows ? ((NewestRows) node).child() : null;
      }
    });
  }
  /** The plan with the versions kept of parts that are cached. */
  private LogicalPlan withoutCached(LogicalPlan plan) {
    final CacheManager cache = this.session.sharedState().cacheManager();
    if (cache.isEmpty()) return plan;
    return (LogicalPlan) plan.transformDownWithSubqueries(new Nodes() {
      Object replaced(LogicalPlan node) {
        if (found(node).isEmpty()) return null;
        LogicalPlan kept = withoutNodes(node);
        return cache.lookupCachedData(session, kept).isDefined() ? kept : null;
      }
    });
  }

  /** What is put in place of some nodes of a plan. */
  private abstract static class Nodes extends scala.runtime.AbstractPartialFunction {
    /** Null for a node that stays. */
    abstract Object replaced(LogicalPlan node);

    public boolean isDefinedAt(Object node) { return replaced((LogicalPlan) node) != null; }
    public Object applyOrElse(Object node, scala.Function1 other) {
      Object found = replaced((LogicalPlan) node);
      return found == null ? other.apply(node) : found;
    }
  }
}
