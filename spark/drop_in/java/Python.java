import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;

/** The one way from Spark into Python for what belongs to a session; a table has its own. */
public final class Python {
  private static volatile scala.Function5 function;

  private Python() {}

  public static void listen(scala.Function5 python) { function = python; }

  /**
   * Asks Python, which finds its own session by the id; a Throwable as the answer is thrown.
   */
  static Object ask(String what, SparkSession session, Object about, Object more) {
    scala.Function5 python = function;
    if (python == null) {
      throw new IllegalStateException("Delta tables are served by optimist.spark.enable(spark).");
    }
    SparkSession known = session == null ? SparkSession.active() : session;
    return thrownIfError(python.apply(what, known.sessionUUID(), known, about, more));
  }

  static Object thrownIfError(Object answer) {
    if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    return answer;
  }
}
