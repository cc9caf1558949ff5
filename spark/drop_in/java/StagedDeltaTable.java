import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A table that CREATE or REPLACE ... AS SELECT makes: it is there once it is committed. */
public final class StagedDeltaTable extends DeltaTable implements StagedTable {
  public StagedDeltaTable(scala.Function2 python, String name, StructType schema,
      Transform[] partitioning, Map properties, String identity) {
    super(python, name, schema, partitioning, properties, identity);
  }

  public void commitStagedChanges() { ask("commit", null); }
  public void abortStagedChanges() { ask("abort", null); }
}
