"""HDFS, through Spark's JVM or through hdfs-native."""
