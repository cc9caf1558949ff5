import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * The table that the options of a reader name, opened once something is asked of it: writers get
 * one, too, where there may be no table yet.
 */
final class FormatTable extends DeltaTable {
  private final StructType given;
  private final Map options;
  private DeltaTable opened;

  FormatTable(StructType given, Map options) {
    super(null, "delta", given, new Transform[0], options, null);
    this.given = given;
    this.options = options;
  }

  private synchronized DeltaTable opened() {
    if (this.opened == null) {
      this.opened = (DeltaTable) Python.ask("read", null, this.options, this.given);
    }
    return this.opened;
  }
  public scala.Function2 python() { return opened().python(); }
  public String name() { return opened().name(); }
  public StructType schema() { return opened().schema(); }
  public Transform[] partitioning() { return opened().partitioning(); }
  public Map properties() { return opened().properties(); }
  String identity() { return opened().identity(); }
  public String toString() { return "delta"; }
}
