import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;

/** What DESCRIBE EXTENDED asks a table for, to see whether it has statistics; it reads nothing. */
final class DeltaScan implements ScanBuilder, Scan {
  private final String name;
  private final StructType schema;

  DeltaScan(String name, StructType schema) {
    this.name = name;
    this.schema = schema;
  }

  public Scan build() { return this; }
  public StructType readSchema() { return this.schema; }
  public Batch toBatch() {
    throw new UnsupportedOperationException(
        "Spark reads the Delta table " + this.name + " in a way that Optimist does not know.");
  }
}
