import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoDir;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.TruncatePartition;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Puts the plan of a table's files where the table is read, and asks Python about commands that
 * change its rows; the tables that these change stay as they are. A temporary view over all columns
 * of a table is that table to a command, as with Delta's jar ({@link ViewedTable}).
 */
public final class RelationRule extends Rule {
  private final SparkSession session;

  public RelationRule(SparkSession session) { this.session = session; }

  public TreeNode apply(TreeNode plan) {
    final Map targets = targets((LogicalPlan) plan);
    return ((LogicalPlan) plan).resolveOperatorsUp(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return isOurs(node, targets); }
      public Object applyOrElse(Object node, scala.Function1 other) {
        return isOurs(node, targets) ? answer((LogicalPlan) node) : other.apply(node);
      }
    });
  }

  private static boolean isOurs(Object node, Map targets) {
    if (isRelation(node)) return !targets.containsKey(node);
    if (isShown(node)) return tableShown((LogicalPlan) node) != null;
    if (node instanceof InsertIntoStatement) return isScan(((InsertIntoStatement) node).table());
    if (node instanceof InsertIntoDir) return isDelta((InsertIntoDir) node);
    if (!isRowCommand(node)) return false;
    LogicalPlan target = target((LogicalPlan) node);
    return isRelation(target) || target instanceof View && target.resolved();
  }
  private static boolean isRelation(Object node) {
    return node instanceof DataSourceV2Relation
        && ((DataSourceV2Relation) node).table() instanceof DeltaTable;
  }
  /** Rows as a temporary view has them, which Spark would take for a folder to write files to. */
  private static boolean isScan(LogicalPlan rows) {
    if (rows instanceof NewestRows) return true;
    if (!(rows instanceof LogicalRelation)) return false;
    Object relation = ((LogicalRelation) rows).relation();
    return relation instanceof HadoopFsRelation
        && ((HadoopFsRelation) relation).location().toString().startsWith("optimist:");
  }
  private static boolean isShown(Object node) {
    return node instanceof ShowPartitions || node instanceof ShowCreateTable
        || node instanceof TruncatePartition;
  }
  private static boolean isDelta(InsertIntoDir node) {
    return node.provider().isDefined() && DeltaFormat.isNamed((String) node.provider().get());
  }
  private static DeltaTable tableShown(LogicalPlan node) {
    Object shown = node.children().apply(0);
    if (!(shown instanceof ResolvedTable)) return null;
    Table table = ((ResolvedTable) shown).table();
    return table instanceof DeltaTable ? (DeltaTable) table : null;
  }
  private static boolean isRowCommand(Object node) {
    return node instanceof DeleteFromTable || node instanceof UpdateTable
        || node instanceof MergeIntoTable || node instanceof V2WriteCommand;
  }
  /** What a command changes, without the names it has in the statement. */
  private static LogicalPlan target(LogicalPlan command) {
    LogicalPlan target = command instanceof V2WriteCommand
        ? (LogicalPlan) ((V2WriteCommand) command).table()
        : (LogicalPlan) command.children().apply(0);
    while (target instanceof SubqueryAlias) {
      target = (LogicalPlan) target.children().apply(0);
    }
    return target;
  }
  private static Map targets(LogicalPlan plan) {
    final Map found = new IdentityHashMap();
    plan.foreach(new scala.runtime.AbstractFunction1() {
      public Object apply(Object node) {
        if (isRowCommand(node)) found.put(target((LogicalPlan) node), node);
        return null;
      }
    });
    return found;
  }

  private LogicalPlan answer(LogicalPlan node) {
    if (node instanceof InsertIntoStatement) {
      LogicalPlan rows = ((InsertIntoStatement) node).table();
      LogicalPlan table = ViewedTable.of(rows);
      if (table != null) return with(node, 0, table);
      Python.ask("insert into rows", this.session, rows, null);
    }
    if (isRowCommand(node)) {
      LogicalPlan table = ViewedTable.of(target(node));
      if (table != null) return ViewedTable.instead(node, target(node), table);
      Object command = Python.ask("change rows", this.session, node, target(node));
      return command == null ? node : (LogicalPlan) command;
    }
    if (node instanceof InsertIntoDir) {
      return (LogicalPlan) Python.ask("write directory", this.session, null, null);
    }
    if (isShown(node)) {
      String what = node instanceof ShowPartitions ? "partitions"
          : node instanceof ShowCreateTable ? "statement" : "truncate partition";
      return (LogicalPlan) tableShown(node).ask(what, node);
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) node;
    CaseInsensitiveStringMap options = relation.options();
    boolean isChanges =
        options.containsKey("readChangeFeed") || options.containsKey("readChangeData");
    DeltaTable table = (DeltaTable) relation.table();
    Object found = table.ask("plan", isChanges ? options : null);
    LogicalPlan rows = withAttributes((LogicalPlan) found, relation.output());
    if (isChanges || !table.isNewest()) return rows;
    return new NewestRows(named(rows, table.entry()), table, null, 0);
  }
  /** Spark asks the relations of a plan by which name they are refreshed. */
  private static LogicalPlan named(LogicalPlan plan, CatalogTable entry) {
    if (entry == null) return plan;
    final scala.Option name = scala.Option.apply(
        with(entry, "stats", scala.Option.apply(null)));  // the log knows better than a metastore
    return (LogicalPlan) plan.transformDown(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) {
        return node instanceof LogicalRelation && ((LogicalRelation) node).catalogTable().isEmpty();
      }
      public Object applyOrElse(Object node, scala.Function1 other) {
        return isDefinedAt(node) ? with((LogicalPlan) node, 2, name) : other.apply(node);
      }
    });
  }
  static CatalogTable with(CatalogTable entry, String name, Object part) {
    Object[] parts = new Object[entry.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = entry.productElementName(i).equals(name) ? part : entry.productElement(i);
    }
    Constructor[] made = CatalogTable.class.getConstructors();
    try {
      for (int i = 0; i < made.length; i++) {
        if (made[i].getParameterTypes().length == parts.length) {
          return (CatalogTable) made[i].newInstance(parts);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    return entry;
  }
  static LogicalPlan with(LogicalPlan relation, int place, Object part) {
    Object[] parts = new Object[relation.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = i == place ? part : relation.productElement(i);
    }
    return (LogicalPlan) relation.makeCopy(parts);
  }

  /**
   * The plan with the attributes that the relation has given out already. A plan of changes has
   * more columns, which come last.
   */
  static LogicalPlan withAttributes(
      LogicalPlan plan, scala.collection.immutable.Seq wanted) {
    if (plan instanceof LogicalRelation) return with(plan, 1, wanted);
    List columns = new ArrayList();
    for (int i = 0; i < wanted.length(); i++) {
      Attribute one = (Attribute) wanted.apply(i);
      columns.add(new Alias((Expression) plan.output().apply(i), one.name(), one.exprId(),
          scala.collection.immutable.Nil$.MODULE$, scala.Option.apply(one.metadata()),
          scala.collection.immutable.Nil$.MODULE$));
    }
    for (int i = wanted.length(); i < plan.output().length(); i++) {
      columns.add(plan.output().apply(i));
    }
    return new Project(Lists.seq(columns), plan);
  }
}
