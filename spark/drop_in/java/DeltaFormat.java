import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format `delta`: readers get a table, and what a writer saves goes to Python in one call. */
public class DeltaFormat
    implements DataSourceRegister, TableProvider, CreatableRelationProvider, StreamSinkProvider,
    StreamSourceProvider {
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
    Map given = asWritten(options);
    return new DeltaSink((SparkSession) context.sparkSession(), (String) given.get("path"),
        new Object[] {given, scala.jdk.javaapi.CollectionConverters.asJava(partitioning),
            mode.toString()});
  }

  public scala.Tuple2 sourceSchema(SQLContext context, scala.Option given, String name,
      scala.collection.immutable.Map options) {
    Object schema = given.isDefined() && ((StructType) given.get()).length() > 0
        ? given.get() : null;
    StructType found = (StructType) Python.ask("stream schema",
        (SparkSession) context.sparkSession(), asWritten(options), schema);
    StreamFrames.remember(options, found.json());
    return new scala.Tuple2(NAME, found);
  }
  public Source createSource(SQLContext context, String metadata, scala.Option given, String name,
      scala.collection.immutable.Map options) {
    return (Source) Python.ask("stream source", (SparkSession) context.sparkSession(),
        asWritten(options), new Object[] {StreamFrames.schema(options), metadata});
  }
  /** Options with their keys as users wrote them; the map itself lists them in lower case. */
  private static Map asWritten(scala.collection.immutable.Map options) {
    return scala.jdk.javaapi.CollectionConverters.asJava(options instanceof CaseInsensitiveMap
        ? ((CaseInsensitiveMap) options).originalMap() : options);
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
