import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;

/** What Spark has cached of queries that follow a table: made anew, or given back. */
public final class CachedTables {
  private CachedTables() {}

  /**
   * Has Spark make anew what it has cached of the table at a place. What can't be read any more is
   * cached no longer.
   */
  public static void refresh(String place) {
    scala.Option active = SparkSession.getActiveSession();
    scala.Option found = active.isDefined() ? active : SparkSession.getDefaultSession();
    if (found.isDefined()) refresh((SparkSession) found.get(), place);
  }
  static void refresh(SparkSession session, String place) {
    CacheManager cache = session.sharedState().cacheManager();
    if (cache.isEmpty()) return;
    List entries = reading(cache, place);
    // The oldest first: later ones may be made of it, and are made anew with it.
    for (int i = entries.size() - 1; i >= 0; i--) {
      CachedData entry = (CachedData) entries.get(i);
      if (!holds(reading(cache, place), entry)) continue;
      try {
        cache.recacheByPlan(session, entry.plan());
      } catch (Exception error) {
        continue;  // a query over it will tell
      }
    }
    // What failed has left others, made of it, to the garbage collector.
    for (int i = 0; i < entries.size(); i++) {
      ((CachedData) entries.get(i)).cachedRepresentation().cacheBuilder().clearCache(false);
    }
  }
  private static boolean holds(List entries, Object one) {
    for (int i = 0; i < entries.size(); i++) {
      if (entries.get(i) == one) return true;
    }
    return false;
  }
  /** Has Spark give back what it has cached of the table at a place. */
  public static void forget(SparkSession session, String place) {
    CacheManager cache = session.sharedState().cacheManager();
    if (cache.isEmpty()) return;
    List entries = reading(cache, place);
    for (int i = 0; i < entries.size(); i++) {
      cache.uncacheQuery(session, ((CachedData) entries.get(i)).plan(), true);
    }
  }

  /** Spark looks for tables outside of subqueries only, and has no list to show. */
  private static List reading(CacheManager cache, String place) {
    scala.collection.immutable.Seq all;
    try {
      all = (scala.collection.immutable.Seq) Sessions.field(cache, "cachedData").get(cache);
    } catch (Exception error) {
      throw new IllegalStateException(error);  // `Sessions.enable` has found it there
    }
    List found = new ArrayList();
    for (int i = 0; i < all.length(); i++) {
      if (isReading(((CachedData) all.apply(i)).plan(), place)) found.add(all.apply(i));
    }
    return found;
  }
  private static boolean isReading(LogicalPlan plan, String place) {
    List nodes = NewestVersions.found(plan);
    for (int i = 0; i < nodes.size(); i++) {
      if (((NewestRows) nodes.get(i)).table().isAt(place)) return true;
    }
    return false;
  }
}
