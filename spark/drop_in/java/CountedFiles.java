import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonFuncExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;

/**
 * The scans of our tables below an aggregate that counts all rows of whole partitions.
 *
 * Each is a list: the key of its files, the filters on its partitions, and the names that the
 * wanted columns have in it, as one text.
 */
final class CountedFiles {
  /** As in `deleted_rows.py`: only our own filter of deleted rows names this column. */
  private static final String RANGE = "__optimist_vector_span";

  private CountedFiles() {}

  /**
   * @param columns attributes of the plan; null for none
   * @return the scans; null if the plan does anything else with rows
   */
  static List below(LogicalPlan plan, List columns) {
    List found = new ArrayList();
    return collect(plan, columns, found) ? found : null;
  }

  private static boolean collect(LogicalPlan plan, List columns, List found) {
    scala.Option known = PhysicalOperation$.MODULE$.unapply(plan);
    if (known.isEmpty()) return false;
    scala.Tuple3 parts = (scala.Tuple3) known.get();
    List inner = inside(columns, (scala.collection.immutable.Seq) parts._1());
    if (inner == null) return false;
    scala.collection.immutable.Seq filters = (scala.collection.immutable.Seq) parts._2();
    if (parts._3() instanceof Union) {
      return filters.isEmpty() && collectAll((Union) parts._3(), inner, found);
    }
    if (!(parts._3() instanceof LogicalRelation)) return false;
    List scan = scan((LogicalRelation) parts._3(), filters, inner);
    return scan != null && found.add(scan);
  }
  private static boolean collectAll(Union union, List columns, List found) {
    for (int i = 0; i < union.children().length(); i++) {
      LogicalPlan child = (LogicalPlan) union.children().apply(i);
      List inner = new ArrayList();
      for (int j = 0; j < columns.size(); j++) {
        int at = place((Attribute) columns.get(j), union.output());
        inner.add(at < 0 ? null : child.output().apply(at));
      }
      if (!collect(child, inner, found)) return false;
    }
    return true;
  }
  /** The same columns below a projection; null if one of them is computed there. */
  private static List inside(List columns, scala.collection.immutable.Seq projection) {
    List found = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      int at = place((Attribute) columns.get(i), projection);
      Object value = at < 0 ? null : projection.apply(at);
      if (value instanceof Alias) value = ((Alias) value).child();
      if (columns.get(i) != null && !(value instanceof Attribute)) return null;
      found.add(value);
    }
    return found;
  }
  private static int place(Attribute column, scala.collection.immutable.Seq columns) {
    for (int i = 0; column != null && i < columns.length(); i++) {
      if (column.exprId().equals(((NamedExpression) columns.apply(i)).exprId())) return i;
    }
    return -1;
  }

  private static List scan(
      LogicalRelation table, scala.collection.immutable.Seq filters, List columns) {
    if (!(table.relation() instanceof HadoopFsRelation)) return null;
    FileIndex files = ((HadoopFsRelation) table.relation()).location();
    String key = files.toString();
    if (!key.startsWith("optimist:")) return null;
    List ofPartitions = new ArrayList();
    for (int i = 0; i < filters.length(); i++) {
      Expression filter = (Expression) filters.apply(i);
      if (isOfPartitions(filter, files.partitionSchema())) {
        ofPartitions.add(filter);
      } else if (!isOfDeletedRows(filter, key)) {
        return null;
      }
    }
    StringBuilder names = new StringBuilder();
    for (int i = 0; i < columns.size(); i++) {
      Attribute column = (Attribute) columns.get(i);
      names.append(i == 0 ? "" : "\0").append(column == null ? "" : column.name());
    }
    List scan = new ArrayList();
    scan.add(key);
    scan.add(Lists.seq(ofPartitions));
    scan.add(names.toString());
    return scan;
  }
  private static boolean isOfPartitions(Expression filter, final StructType partitions) {
    if (SubqueryExpression$.MODULE$.hasSubquery(filter) || !filter.deterministic()) return false;
    return !filter.exists(new scala.runtime.AbstractFunction1() {
      public Object apply(Object part) {
        boolean isOther = part instanceof PythonFuncExpression || part instanceof Attribute
            && !contains(partitions, ((Attribute) part).name());
        return Boolean.valueOf(isOther);
      }
    });
  }
  private static boolean contains(StructType columns, String name) {
    String[] names = columns.fieldNames();
    for (int i = 0; i < names.length; i++) {
      if (names[i].equals(name)) return true;
    }
    return false;
  }
  /** Whether it is the filter by which a scan of files with vectors leaves out deleted rows. */
  private static boolean isOfDeletedRows(Expression filter, String key) {
    if (!key.endsWith("&rows=dense") && !key.endsWith("&rows=sparse")) return false;
    return filter.exists(new scala.runtime.AbstractFunction1() {
      public Object apply(Object part) {
        return Boolean.valueOf(
            part instanceof Attribute && ((Attribute) part).name().equals(RANGE));
      }
    });
  }
}
