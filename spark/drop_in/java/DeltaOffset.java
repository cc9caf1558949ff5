import org.apache.spark.sql.execution.streaming.Offset;

/** How far a stream is, as the text that Spark keeps; equal texts are equal offsets to it. */
final class DeltaOffset extends Offset {
  private final String json;

  DeltaOffset(String json) { this.json = json; }

  public String json() { return this.json; }
  public String toString() { return this.json; }
}
