import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** One name node and one data node on 127.0.0.1, until the process is told to stop. */
public final class MiniHdfs {
  /** Arguments: port of the name node, folder for its data, file to make once it serves. */
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new Configuration();
    conf.setInt("dfs.replication", 1);
    conf.setBoolean("dfs.permissions.enabled", false);
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(conf, new File(arguments[1]))
            .numDataNodes(1)
            .nameNodePort(Integer.parseInt(arguments[0]))
            .build();
    cluster.waitActive();
    Files.writeString(Path.of(arguments[2]), cluster.getURI().toString());
    Thread.currentThread().join();
  }
}
