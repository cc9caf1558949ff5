import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonFuncExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Puts the answer of the log in the place of an aggregate, where the log has an exact one.
 *
 * The aggregate counts rows, or values of a column, or finds their least or greatest, of all rows of
 * our tables or of whole partitions ({@link CountedFiles}), in all or by partition columns. Python
 * knows the statistics, and answers or does not: then Spark reads the files.
 */
public final class AnswerAggregates extends Rule {
  private final SparkSession session;

  AnswerAggregates(SparkSession session) { this.session = session; }

  public TreeNode apply(TreeNode plan) {
    // Of a correlated subquery Spark still wants to know what it gives for no rows.
    if (plan instanceof Subquery && ((Subquery) plan).correlated()) return plan;
    return ((LogicalPlan) plan).transformDown(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return node instanceof Aggregate; }
      public Object applyOrElse(Object node, scala.Function1 other) {
        LogicalPlan found = node instanceof Aggregate ? answer((Aggregate) node) : null;
        return found == null ? other.apply(node) : found;
      }
    });
  }

  /** The answer, or null without an exact one. */
  private LogicalPlan answer(Aggregate query) {
    List columns = new ArrayList();  // an Attribute for each value that is wanted, null for `rows`
    List values = new ArrayList();  // what stands for it in the query
    StringBuilder functions = new StringBuilder();
    scala.collection.immutable.Seq groups = query.groupingExpressions();
    for (int i = 0; i < groups.length(); i++) {
      if (!(groups.apply(i) instanceof Attribute)) return null;
      columns.add(groups.apply(i));
      values.add(groups.apply(i));
      functions.append("group ");
    }
    List found = aggregates(query);
    if (found == null) return null;
    for (int i = 0; i < found.size(); i++) {
      AggregateExpression one = (AggregateExpression) found.get(i);
      Object column = column(one);
      if (column == null) return null;
      columns.add(column instanceof Attribute ? column : null);
      values.add(one);
      functions.append(column instanceof Attribute ? name(one.aggregateFunction()) : "rows")
          .append(' ');
    }
    if (columns.isEmpty()) return null;
    List files = CountedFiles.below((LogicalPlan) query.child(), columns);
    if (files == null) return null;
    try {
      Object rows = Python.ask("aggregates", this.session, files, functions.toString().trim());
      return rows == null ? null : answered(query, values, (LogicalPlan) rows);
    } catch (RuntimeException error) {
      return null;  // the query finds out why when it runs
    }
  }

  /** The aggregate functions of a query; null if it has parts that only Spark can run. */
  private static List aggregates(Aggregate query) {
    final List found = new ArrayList();
    final boolean[] isPlain = {true};
    for (int i = 0; i < query.aggregateExpressions().length(); i++) {
      Expression shown = (Expression) query.aggregateExpressions().apply(i);
      if (!shown.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(shown)) return null;
      shown.foreach(new scala.runtime.AbstractFunction1() {
        public Object apply(Object part) {
          if (part instanceof AggregateExpression) found.add(part);
          if (part instanceof PythonFuncExpression) isPlain[0] = false;
          return null;
        }
      });
    }
    return isPlain[0] ? found : null;
  }
  /** The column of a function, or its constant that is not null; null for other functions. */
  private static Object column(AggregateExpression one) {
    AggregateFunction function = one.aggregateFunction();
    if (one.isDistinct() || one.filter().isDefined() || name(function) == null) return null;
    if (function.children().length() != 1) return null;
    Object column = function.children().apply(0);
    if (column instanceof Attribute) return column;
    boolean isRows = function instanceof Count && column instanceof Literal
        && ((Literal) column).value() != null;
    return isRows ? column : null;
  }
  private static String name(AggregateFunction function) {
    if (function instanceof Count) return "count";
    return function instanceof Min ? "min" : function instanceof Max ? "max" : null;
  }

  /** The rows under the names of the query; null if they have other types. */
  private static LogicalPlan answered(Aggregate query, final List values, LogicalPlan rows) {
    final scala.collection.immutable.Seq known = rows.output();
    for (int i = 0; i < values.size(); i++) {
      if (!((Expression) values.get(i)).dataType().equals(((Attribute) known.apply(i)).dataType())) {
        return null;
      }
    }
    List shown = new ArrayList();
    for (int i = 0; i < query.aggregateExpressions().length(); i++) {
      NamedExpression one = (NamedExpression) query.aggregateExpressions().apply(i);
      Expression value = one instanceof Alias ? ((Alias) one).child() : (Expression) one;
      TreeNode other = value.transformDown(new scala.runtime.AbstractPartialFunction() {
        public boolean isDefinedAt(Object part) { return place(part, values) >= 0; }
        public Object applyOrElse(Object part, scala.Function1 rest) {
          int at = place(part, values);
          return at < 0 ? rest.apply(part) : known.apply(at);
        }
      });
      shown.add(new Alias((Expression) other, one.name(), one.exprId(), one.qualifier(),
          scala.Option.apply(one.metadata()), scala.collection.immutable.Nil$.MODULE$));
    }
    LogicalPlan answer = new Project(Lists.seq(shown), rows);
    return new AnsweredRows(
        (LogicalPlan) ConvertToLocalRelation$.MODULE$.apply(answer), query);
  }
  private static int place(Object part, List values) {
    for (int i = 0; i < values.size(); i++) {
      Object value = values.get(i);
      if (part == value) return i;
      if (value instanceof Attribute && part instanceof Attribute
          && ((Attribute) part).exprId().equals(((Attribute) value).exprId())) {
        return i;
      }
    }
    return -1;
  }
}
