import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.V2TableWithV1Fallback;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A version of a Delta table, as Spark's commands see it. Python has the table itself. */
public class DeltaTable
    implements SupportsRead, SupportsWrite, TruncatableTable, V2TableWithV1Fallback {
  private final scala.Function2 python;
  private final String name;
  private final StructType schema;
  private final Transform[] partitioning;
  private final Map properties;
  private final String identity;
  private CatalogTable entry;

  /**
   * @param python takes what is asked and one argument, see `opened_table.py`
   * @param identity its place, `#`, and what tells it from other tables that are or were there;
   *     null unless queries read the newest version, since nobody chose one
   */
  public DeltaTable(scala.Function2 python, String name, StructType schema,
      Transform[] partitioning, Map properties, String identity) {
    this.identity = identity;
    this.python = python;
    this.name = name;
    this.schema = schema;
    this.partitioning = partitioning;
    this.properties = properties;
  }

  /** Whoever holds a table asks its Python side; a Throwable as the answer is thrown. */
  public Object ask(String what, Object argument) {
    return Python.thrownIfError(python().apply(what, argument));
  }

  public scala.Function2 python() { return this.python; }
  public String name() { return this.name; }
  public StructType schema() { return this.schema; }
  public Transform[] partitioning() { return this.partitioning; }
  public Map properties() { return this.properties; }
  CatalogTable entry() { return this.entry; }
  /** Streams that name a table go by the format and the path in its entry, not by its columns. */
  public CatalogTable v1Table() {
    if (this.entry == null) Python.ask("stream by name", null, this.name, null);
    return RelationRule.with(this.entry, "schema", new StructType());
  }
  void setEntry(CatalogTable entry) { this.entry = entry; }
  boolean isNewest() { return identity() != null; }
  String identity() { return this.identity; }
  boolean isAt(String place) { return isNewest() && identity().startsWith(place + "#"); }

  public Set capabilities() {
    return new HashSet(Arrays.asList(new TableCapability[] {
        TableCapability.BATCH_READ, TableCapability.V1_BATCH_WRITE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC,
        TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA}));
  }

  /** Nobody scans this table or writes to it: `RelationRule` puts other plans in its place. */
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new DeltaScan(name(), schema());
  }
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new UnsupportedOperationException(
        "Spark writes the Delta table " + name() + " in a way that Optimist does not know.");
  }
  public boolean truncateTable() { ask("truncate", null); return true; }
  /** Both of two interfaces have it from Spark 4.2 on, so it can't be left to either. */
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
  public String toString() { return name(); }
}
