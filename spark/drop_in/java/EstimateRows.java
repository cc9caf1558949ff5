import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.catalog.CatalogColumnStat;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;

/**
 * Tells Spark's cost-based optimizer what the log knows about the rows of a scan.
 *
 * Spark looks for that in the catalog entry of a relation. The figures are those of the files that
 * {@link PruneFiles} has left, and of the columns that the query compares, joins or groups by.
 */
public final class EstimateRows extends Rule {
  /** Besides numbers. Figures of any other type, such as timestamp_ntz, end Spark's planning. */
  private static final List ESTIMATED = Arrays.asList(new DataType[] {
      DataTypes.StringType, DataTypes.BinaryType, DataTypes.BooleanType, DataTypes.DateType,
      DataTypes.TimestampType});
  private final SparkSession session;

  EstimateRows(SparkSession session) { this.session = session; }

  public TreeNode apply(TreeNode plan) {
    if (!this.session.sessionState().conf().cboEnabled()) return plan;
    final List compared = compared((LogicalPlan) plan);
    return ((LogicalPlan) plan).transformDown(new scala.runtime.AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) { return isUnknown(node); }
      public Object applyOrElse(Object node, scala.Function1 other) {
        return isUnknown(node) ? known((LogicalRelation) node, compared) : other.apply(node);
      }
    });
  }

  private static boolean isUnknown(Object node) {
    if (!(node instanceof LogicalRelation)) return false;
    LogicalRelation table = (LogicalRelation) node;
    FileIndex files = files(table);
    return files != null && files.toString().startsWith("optimist:")
        && (table.catalogTable().isEmpty()
            || ((CatalogTable) table.catalogTable().get()).stats().isEmpty());
  }
  private static FileIndex files(LogicalRelation table) {
    Object relation = table.relation();
    return relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : null;
  }
  /** The sets of attributes that nodes other than projections refer to. */
  private static List compared(LogicalPlan plan) {
    final List found = new ArrayList();
    plan.foreach(new scala.runtime.AbstractFunction1() {
      public Object apply(Object node) {
        if (!(node instanceof Project)) found.add(((LogicalPlan) node).references());
        return null;
      }
    });
    return found;
  }

  /** The relation with its figures; as it was, where the log does not have them. */
  private LogicalPlan known(LogicalRelation table, List compared) {
    FileIndex files = files(table);
    boolean isPruned = files instanceof PrunedFiles;
    FileIndex whole = isPruned ? ((PrunedFiles) files).whole() : files;
    Object none = Lists.seq(Collections.emptyList());
    List scan = new ArrayList();
    scan.add(whole.toString());
    scan.add(isPruned ? ((PrunedFiles) files).ofPartitions() : none);
    scan.add(isPruned ? ((PrunedFiles) files).ofData() : none);
    scan.add(names(table.output(), compared));
    scala.Option entry = table.catalogTable();
    try {
      List found = (List) Python.ask(
          "estimates", this.session, scan, entry.isDefined() ? entry.get() : null);
      return found == null ? table : RelationRule.with(table, 2, scala.Option.apply(entry(found)));
    } catch (RuntimeException error) {
      return table;  // the query finds out why when it runs
    }
  }
  private static String names(scala.collection.immutable.Seq output, List compared) {
    StringBuilder names = new StringBuilder();
    for (int i = 0; i < output.length(); i++) {
      Attribute column = (Attribute) output.apply(i);
      DataType type = column.dataType();
      if (!(type instanceof NumericType) && !ESTIMATED.contains(type)) continue;
      for (int j = 0; j < compared.size(); j++) {
        if (((AttributeSet) compared.get(j)).contains(column)) {
          names.append(names.length() == 0 ? "" : "\0").append(column.name());
          break;
        }
      }
    }
    return names.toString();
  }
  /** The entry with the figures of Python's answer (`estimates.py`). */
  private static CatalogTable entry(List found) {
    scala.collection.immutable.Map columns = scala.collection.immutable.Map$.MODULE$.empty();
    for (int i = 3; i < found.size(); i += 5) {
      scala.Option none = scala.Option.apply(null);
      columns = (scala.collection.immutable.Map) columns.updated(found.get(i),
          new CatalogColumnStat(count(found.get(i + 1)), scala.Option.apply(found.get(i + 2)),
              scala.Option.apply(found.get(i + 3)), count(found.get(i + 4)), none, none, none,
              CatalogColumnStat.VERSION()));
    }
    scala.Option rows = count(found.get(2));
    return RelationRule.with((CatalogTable) found.get(0), "stats", scala.Option.apply(
        new CatalogStatistics((scala.math.BigInt) count(found.get(1)).get(), rows, columns)));
  }
  private static scala.Option count(Object text) {
    return scala.Option.apply(text == null ? null : scala.math.BigInt.apply((String) text));
  }
}
