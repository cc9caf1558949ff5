import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;

/** The table functions `table_changes` and `table_changes_by_path`. */
final class ChangesFunction extends scala.runtime.AbstractFunction1 {
  static final String[] NAMES = {"table_changes", "table_changes_by_path"};
  private final SparkSession session;
  private final String name;

  private ChangesFunction(SparkSession session, String name) {
    this.session = session;
    this.name = name;
  }

  static void register(SparkSession session, TableFunctionRegistry registry) {
    for (int i = 0; i < NAMES.length; i++) {
      registry.registerFunction(identifier(registry, NAMES[i]),
          new ExpressionInfo(ChangesFunction.class.getName(), NAMES[i]),
          new ChangesFunction(session, NAMES[i]));
    }
  }
  static void drop(TableFunctionRegistry registry) {
    for (int i = 0; i < NAMES.length; i++) registry.dropFunction(identifier(registry, NAMES[i]));
  }
  /** Where Spark's own functions are by that version's reckoning: since 4.2 names have parts. */
  private static FunctionIdentifier identifier(TableFunctionRegistry registry, String name) {
    scala.collection.immutable.Seq known = registry.listFunction();
    for (int i = 0; i < known.length(); i++) {
      FunctionIdentifier one = (FunctionIdentifier) known.apply(i);
      if (one.funcName().equals("range")) {
        return new FunctionIdentifier(name, one.database(), one.catalog());
      }
    }
    return new FunctionIdentifier(name);
  }

  /** Python gets numbers as Long, text as String, and a moment as the text `micros:` and number. */
  public Object apply(Object arguments) {
    scala.collection.immutable.Seq given = (scala.collection.immutable.Seq) arguments;
    Object[] values = new Object[given.length()];
    for (int i = 0; i < values.length; i++) values[i] = value((Expression) given.apply(i));
    return Python.ask("changes", this.session, this.name, values);
  }
  private static Object value(Expression argument) {
    if (!argument.foldable()) return argument;
    Object value = argument.eval(InternalRow.empty());
    if (value == null) return null;
    if (argument.dataType() instanceof StringType) return value.toString();
    if (argument.dataType() instanceof TimestampType) return "micros:" + value;
    return value instanceof Number ? (Object) Long.valueOf(((Number) value).longValue()) : argument;
  }
}
