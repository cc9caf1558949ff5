import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;

/** A table that a stream writes to: each batch goes to Python in one call. */
final class DeltaSink implements Sink {
  private static final String QUERY = "sql.streaming.queryId";
  private final String path;
  private final Object[] asked;

  /** @param asked the options, the partition columns and the output mode, as the writer has them */
  DeltaSink(SparkSession session, String path, Object[] asked) {
    this.path = path;
    this.asked = asked;
    Python.ask("sink", session, null, asked);
  }

  /** The rows are handed on without the plan that made them, which can't be planned again. */
  public void addBatch(long number, Dataset rows) {
    org.apache.spark.sql.classic.Dataset batch = (org.apache.spark.sql.classic.Dataset) rows;
    SparkSession session = batch.sparkSession();
    Object alone = session.internalCreateDataFrame(
        batch.queryExecution().toRdd(), batch.schema(), false);
    String query = session.sparkContext().getLocalProperty(QUERY);
    Python.ask("add batch", session, this.asked,
        new Object[] {alone, batch, query, Long.valueOf(number)});
  }

  public String toString() { return "DeltaSink[" + this.path + "]"; }
}
