import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One write into a table: Spark says how, and then hands over the rows, which go to Python.
 *
 * Python is asked `write` with this object.
 */
public final class DeltaWrite
    implements SupportsOverwriteV2, SupportsDynamicOverwrite, V1Write, InsertableRelation {
  private final DeltaTable table;
  private final LogicalWriteInfo info;
  private final List predicates = new ArrayList();
  private String mode = "append";
  private Dataset rows;

  DeltaWrite(DeltaTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  /** `append`, `overwrite` (what the predicates say) or `dynamic`. */
  public String mode() { return this.mode; }
  /** What to overwrite: all of these `Predicate`s; none means everything. */
  public List predicates() { return this.predicates; }
  public CaseInsensitiveStringMap options() { return this.info.options(); }
  public Dataset rows() { return this.rows; }

  public WriteBuilder overwrite(Predicate[] filters) {
    this.mode = "overwrite";
    for (int i = 0; i < filters.length; i++) this.predicates.add(filters[i]);
    return this;
  }
  public WriteBuilder truncate() { this.mode = "overwrite"; return this; }
  public WriteBuilder overwriteDynamicPartitions() { this.mode = "dynamic"; return this; }
  public Write build() { return this; }
  public InsertableRelation toInsertableRelation() { return this; }
  public void insert(Dataset data, boolean overwrite) {
    this.rows = data;
    this.table.ask("write", this);
  }
  public String toString() { return this.mode + " " + this.table.name(); }
}
