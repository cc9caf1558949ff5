import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/**
 * The files of a table that a query's filters leave, so that Spark knows how much it would read: a
 * small table is broadcast. They are found again by the same filters when the query runs.
 *
 * Equal to Spark are those of one index: what differs stands in the plan as filters.
 */
public final class PrunedFiles implements FileIndex {
  private final FileIndex whole;
  private final scala.collection.immutable.Seq ofPartitions;
  private final scala.collection.immutable.Seq ofData;
  private final long sizeInBytes;

  /** The parameters are those of `listFiles`. */
  PrunedFiles(FileIndex whole, scala.collection.immutable.Seq ofPartitions,
      scala.collection.immutable.Seq ofData) {
    this.whole = whole;
    this.ofPartitions = ofPartitions;
    this.ofData = ofData;
    Object size = ((scala.Function2) whole).apply(ofPartitions, ofData);
    this.sizeInBytes = ((Number) size).longValue();
  }

  public FileIndex whole() { return this.whole; }
  scala.collection.immutable.Seq ofPartitions() { return this.ofPartitions; }
  scala.collection.immutable.Seq ofData() { return this.ofData; }
  public long sizeInBytes() { return this.sizeInBytes; }
  public String[] inputFiles() {
    List paths = new ArrayList();
    scala.collection.immutable.Seq found = this.whole.listFiles(this.ofPartitions, this.ofData);
    for (scala.collection.Iterator parts = found.iterator(); parts.hasNext();) {
      scala.collection.Iterator files = ((PartitionDirectory) parts.next()).files().iterator();
      while (files.hasNext()) {
        paths.add(((FileStatusWithMetadata) files.next()).getPath().toString());
      }
    }
    return (String[]) paths.toArray(new String[0]);
  }

  public scala.collection.immutable.Seq listFiles(
      scala.collection.immutable.Seq ofPartitions, scala.collection.immutable.Seq ofData) {
    return this.whole.listFiles(ofPartitions, ofData);
  }
  public scala.collection.immutable.Seq rootPaths() { return this.whole.rootPaths(); }
  public StructType partitionSchema() { return this.whole.partitionSchema(); }
  public scala.Option metadataOpsTimeNs() { return this.whole.metadataOpsTimeNs(); }
  public boolean isTimeTravel() { return false; } // asked since Spark 4.3; the key has the version
  public void refresh() {}

  public boolean equals(Object other) {
    return other instanceof PrunedFiles && ((PrunedFiles) other).whole.equals(this.whole);
  }
  public int hashCode() { return this.whole.hashCode(); }
  /** Another text than that of the whole, by which Python compares. */
  public String toString() { return this.whole.toString() + "&left"; }
}
