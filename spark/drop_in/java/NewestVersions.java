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
 * What Spark has cached stays: cached rows are those of the version that was analysed, or of the
 * one that was the newest when they were to be cached.
 */
public final class NewestVersions extends Rule {
  private final SparkSession session;

  public NewestVersions(SparkSession session) { this.session = session; }

  public TreeNode apply(TreeNode plan) {
    LogicalPlan given = (LogicalPlan) plan;
    if (found(given).isEmpty()) return given;
    LogicalPlan uncached = withoutCached(given);
    List nodes = found(uncached);
    if (nodes.isEmpty()) return uncached;
    List newer = newer(nodes);
    if (isToBeCached()) remember(nodes, newer);
    return replaced(uncached, nodes, newer);
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

  /** For each node the plan of newer rows, as Python gives it; null where there are none. */
  private List newer(List nodes) {
    Object[] tables = new Object[nodes.size()];
    Object[] names = new Object[nodes.size()];
    for (int i = 0; i < tables.length; i++) {
      tables[i] = ((NewestRows) nodes.get(i)).table();
      names[i] = names((NewestRows) nodes.get(i));
    }
    return (List) Python.ask("newest", this.session, tables, names);
  }
  private static LogicalPlan rows(NewestRows node, Object newer) {
    return newer == null
        ? node.child() : RelationRule.withAttributes((LogicalPlan) newer, node.output());
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

  private static LogicalPlan replaced(LogicalPlan plan, List nodes, List newer) {
    final Map rows = new IdentityHashMap();
    for (int i = 0; i < nodes.size(); i++) {
      rows.put(nodes.get(i), rows((NewestRows) nodes.get(i), newer.get(i)));
    }
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
    if (this.session.sharedState().cacheManager().isEmpty()) return plan;
    return (LogicalPlan) plan.transformDownWithSubqueries(new Nodes() {
      Object replaced(LogicalPlan node) { return cached(node); }
    });
  }
  private LogicalPlan cached(LogicalPlan plan) {
    List nodes = found(plan);
    if (nodes.isEmpty()) return null;
    LogicalPlan kept = withoutNodes(plan);
    if (isCached(kept)) return kept;
    Object[] cachings = ((NewestRows) nodes.get(0)).table().cachings().toArray();
    for (int i = 0; i < cachings.length; i++) {
      LogicalPlan then = asOf(plan, nodes, (Map) cachings[i]);
      if (then != null && isCached(then)) return then;
    }
    return null;
  }
  private boolean isCached(LogicalPlan plan) {
    CacheManager cache = this.session.sharedState().cacheManager();
    return cache.lookupCachedData(this.session, plan).isDefined();
  }

  /** Whether Spark asks what to look for when it has cached the rows. */
  private static boolean isToBeCached() {
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if (calls[i].getClassName().endsWith(".CacheManager")
          && calls[i].getMethodName().contains("cacheQuery")
          && !calls[i].getMethodName().contains("uncacheQuery")) return true;
    }
    return false;
  }
  /** Which plans stand for tables in a query that is to be cached, for those that come later. */
  private static void remember(List nodes, List newer) {
    Map plans = new IdentityHashMap();
    for (int i = 0; i < nodes.size(); i++) {
      DeltaTable table = ((NewestRows) nodes.get(i)).table();
      if (!plans.containsKey(table)) table.addCaching(plans);
      plans.put(table, newer.get(i));
    }
  }
  /** The plan with its tables as they were then; null if one of them was not there. */
  private static LogicalPlan asOf(LogicalPlan plan, List nodes, Map plans) {
    List newer = new ArrayList();
    for (int i = 0; i < nodes.size(); i++) {
      NewestRows node = (NewestRows) nodes.get(i);
      LogicalPlan then = (LogicalPlan) plans.get(node.table());
      if (!plans.containsKey(node.table())) return null;
      if (then != null && then.output().length() != node.output().length()) return null;
      newer.add(then);
    }
    return replaced(plan, nodes, newer);
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
