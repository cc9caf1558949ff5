import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;

/**
 * The table behind a temporary view: one that shows all rows and columns of the newest version, so
 * that whoever changes the view can only mean the table.
 */
final class ViewedTable {
  private ViewedTable() {}

  /**
   * @param rows a view, or what Spark has left of one
   * @return the table as it is now, under the view's columns; null if the view shows anything else
   */
  static LogicalPlan of(LogicalPlan rows) {
    LogicalPlan all = withoutNames(rows);
    if (!(all instanceof NewestRows)) return null;
    Table table = (Table) ((NewestRows) all).table().ask("table", null);
    if (table == null) return null;
    LogicalPlan relation = DataSourceV2Relation.create(
        table, scala.Option.apply(null), scala.Option.apply(null));
    return areSame(relation.output(), rows.output())
        ? RelationRule.with(relation, 1, rows.output()) : null;
  }

  /** The command with one part of it exchanged. */
  static LogicalPlan instead(LogicalPlan command, final LogicalPlan part, final LogicalPlan other) {
    return (LogicalPlan) command.transformDown(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return node == part; }
      public Object applyOrElse(Object node, scala.Function1 rest) {
        return node == part ? other : rest.apply(node);
      }
    });
  }

  private static LogicalPlan withoutNames(LogicalPlan rows) {
    LogicalPlan plan = rows;
    while (plan instanceof SubqueryAlias
        || plan instanceof View && ((View) plan).isTempView()
        || plan instanceof Project && isStar((Project) plan)) {
      plan = (LogicalPlan) plan.children().apply(0);
    }
    return plan;
  }
  /** Whether all columns go through in their order, as they are. */
  private static boolean isStar(Project project) {
    scala.collection.immutable.Seq columns = project.child().output();
    if (!areSame(columns, project.output())) return false;
    for (int i = 0; i < columns.length(); i++) {
      NamedExpression made = (NamedExpression) project.projectList().apply(i);
      Expression value = made instanceof Alias ? ((Alias) made).child() : (Expression) made;
      // Spark casts the columns of a view's text to the types that they have.
      if (value instanceof Cast && isSame(value.dataType(), ((Cast) value).child().dataType())) {
        value = ((Cast) value).child();
      }
      if (!(value instanceof Attribute)
          || !((Attribute) value).exprId().equals(((Attribute) columns.apply(i)).exprId())) {
        return false;
      }
    }
    return true;
  }
  /** Whether columns have the same names and types. */
  private static boolean areSame(
      scala.collection.immutable.Seq some, scala.collection.immutable.Seq others) {
    if (some.length() != others.length()) return false;
    for (int i = 0; i < some.length(); i++) {
      Attribute one = (Attribute) some.apply(i);
      Attribute other = (Attribute) others.apply(i);
      if (!one.name().equals(other.name()) || !isSame(one.dataType(), other.dataType())) {
        return false;
      }
    }
    return true;
  }
  /** Whether types are the same, but for what may be null in them. */
  private static boolean isSame(DataType one, DataType other) {
    return one.asNullable().equals(other.asNullable());
  }
}
