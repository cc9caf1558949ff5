import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format `delta`: readers get a table, and what a writer saves goes to Python in one call. */
public class DeltaFormat
    implements DataSourceRegister, TableProvider, CreatableRelationProvider, StreamSinkProvider {
  private static final String NAME = "delta";
  /** The class that has this name in Delta's jar; scripts may say it instead. */
  private static final String CLASS = "org.apache.spark.sql.delta.sources.DeltaDataSource";

  static boolean isNamed(String format) {
    return NAME.equalsIgnoreCase(format) || CLASS.equals(format);
  }

  public String shortName() { return NAME; }
  public String toString() { return NAME; }

  /** A writer gives the schema of its rows to `getTable`, a reader the one that users gave. */
  public boolean supportsExternalMetadata() { return true; }
  public StructType inferSchema(CaseInsensitiveStringMap options) { return null; }
  public Table getTable(StructType schema, Transform[] partitioning, Map options) {
    return new FormatTable(schema, options);
  }

  public BaseRelation createRelation(final SQLContext context, SaveMode mode,
      scala.collection.immutable.Map options, Dataset rows) {
    final StructType schema = rows.schema();
    Python.ask("save", (SparkSession) context.sparkSession(), rows, new Object[] {
        mode.name(), scala.jdk.javaapi.CollectionConverters.asJava(options)});
    return new BaseRelation() {
      public SQLContext sqlContext() { return context; }
      public StructType schema() { return schema; }
    };
  }

  public Sink createSink(SQLContext context, scala.collection.immutable.Map options,
      scala.collection.immutable.Seq partitioning, OutputMode mode) {
    Map given = scala.jdk.javaapi.CollectionConverters.asJava(options);
    return new DeltaSink((SparkSession) context.sparkSession(), (String) given.get("path"),
        new Object[] {given, scala.jdk.javaapi.CollectionConverters.asJava(partitioning),
            mode.toString()});
  }

  /** No table of Delta holds intervals or times of day, nor a column with such a part. */
  public boolean supportsDataType(DataType type) {
    return !type.existsRecursively(new scala.runtime.AbstractFunction1() {
      public Object apply(Object part) {
        String name = ((DataType) part).typeName();
        return Boolean.valueOf(name.startsWith("interval") || name.startsWith("time("));
      }
    });
  }
}
