import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Puts the newest version of each table in place of `NewestRows`.
 *
 * 1. When Spark prepares a query, its nodes are told that they belong together.
 * 2. Spark puts in place of parts of the query what it has cached of them.
 * 3. When it optimises what is left, the nodes are replaced, by one version of each table; and
 *    `HiddenMetadata` by plain projections.
 */
public final class NewestVersions extends Rule {
  private final SparkSession session;
  private final boolean isOptimizing;

  private NewestVersions(SparkSession session, boolean isOptimizing) {
    this.session = session;
    this.isOptimizing = isOptimizing;
  }

  /** The rule of step 1. */
  static NewestVersions preparing(SparkSession session) {
    return new NewestVersions(session, false);
  }
  /** The rule of step 3. */
  static NewestVersions optimizing(SparkSession session) {
    return new NewestVersions(session, true);
  }

  public TreeNode apply(TreeNode plan) {
    LogicalPlan given = (LogicalPlan) plan;
    return this.isOptimizing ? shown(replaced(this.session, given)) : prepared(given);
  }

  /**
   * The plan as a query would read it now, for commands that read more than once: with what is
   * cached of it, and with the versions chosen of the rest.
   */
  public static LogicalPlan fixed(SparkSession session, LogicalPlan plan) {
    if (found(plan).isEmpty()) return plan;
    QueryExecution query =
        session.sessionState().executePlan(plan, CommandExecutionMode.ALL());
    return replaced(session, query.withCachedData());
  }

  /** The `NewestRows` of a plan, those in its subqueries included. */
  static List found(LogicalPlan plan) {
    final List nodes = new ArrayList();
    plan.foreachWithSubqueries(new scala.runtime.AbstractFunction1() {
      public Object apply(Object node) {
        if (node instanceof NewestRows) nodes.add(node);
        return null;
      }
    });
    return nodes;
  }

  private LogicalPlan prepared(LogicalPlan plan) {
    List nodes = found(plan);
    if (nodes.isEmpty()) return plan;
    QueryVersions versions = new QueryVersions(this.session, nodes);
    Map known = new IdentityHashMap();
    for (int i = 0; i < nodes.size(); i++) {
      known.put(nodes.get(i), ((NewestRows) nodes.get(i)).in(versions, i));
    }
    return replaced(plan, known);
  }
  private static LogicalPlan replaced(SparkSession session, LogicalPlan plan) {
    List nodes = found(plan);
    if (nodes.isEmpty()) return plan;
    Map rows = new IdentityHashMap();
    for (int i = 0; i < nodes.size(); i++) {
      rows.put(nodes.get(i), ((NewestRows) nodes.get(i)).chosen(session));
    }
    return replaced(plan, rows);
  }
  private static LogicalPlan shown(LogicalPlan plan) {
    return (LogicalPlan) plan.transformUpWithSubqueries(
        new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return node instanceof HiddenMetadata; }
      public Object applyOrElse(Object node, scala.Function1 other) {
        return isDefinedAt(node) ? ((HiddenMetadata) node).projection() : other.apply(node);
      }
    });
  }
  private static LogicalPlan replaced(LogicalPlan plan, final Map others) {
    return (LogicalPlan) plan.transformDownWithSubqueries(
        new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return others.containsKey(node); }
      public Object applyOrElse(Object node, scala.Function1 other) {
        Object found = others.get(node);
        return found == null ? other.apply(node) : found;
      }
    });
  }
}
