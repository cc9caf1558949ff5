import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format `delta`: readers get a table, and what a writer saves goes to Python in one call. */
public final class DeltaFormat
    implements DataSourceRegister, TableProvider, CreatableRelationProvider {
  public String shortName() { return "delta"; }

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
  public boolean supportsDataType(org.apache.spark.sql.types.DataType type) { return true; }
}
