import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The versions that one query reads, one of each table. They are chosen when the first of its tables
 * is about to be read, so a query whose rows are all cached asks for none.
 */
public final class QueryVersions {
  private final SparkSession session;
  private final Object[] tables;
  private final Object[] names;
  private List newer;

  /** @param nodes the `NewestRows` of the query */
  public QueryVersions(SparkSession session, List nodes) {
    this.session = session;
    this.tables = new Object[nodes.size()];
    this.names = new Object[nodes.size()];
    for (int i = 0; i < this.tables.length; i++) {
      this.tables[i] = ((NewestRows) nodes.get(i)).table();
      this.names[i] = ((NewestRows) nodes.get(i)).names();
    }
  }

  /** The plan of newer rows for a node, as Python gives it; null where there are none. */
  synchronized LogicalPlan newer(int place) {
    if (this.newer == null) {
      this.newer = (List) Python.ask("newest", this.session, this.tables, this.names);
    }
    LogicalPlan found = (LogicalPlan) this.newer.get(place);
    if (found == null) return null;
    // What Spark does with every plan before it is optimised; this one comes later.
    Rule finish = (Rule) this.session.sessionState().optimizer().FinishAnalysis();
    return (LogicalPlan) finish.apply(found);
  }
}
