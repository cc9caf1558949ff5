import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/**
 * The session's catalog, and the catalog `delta`, in which names are paths: what concerns Delta
 * tables is Python's, everything else stays with the catalog that the session had.
 */
public final class DeltaCatalog extends DelegatingCatalogExtension implements StagingTableCatalog {
  private SparkSession session;
  private String name;
  private CatalogPlugin delegate;

  /** Spark makes it so, by the name of the class, in a session that has not parsed anything yet. */
  public DeltaCatalog() {}

  DeltaCatalog(SparkSession session, String name, CatalogPlugin delegate) {
    this.session = session;
    this.name = name;
    this.delegate = delegate;
    setDelegateCatalog(delegate);
  }

  public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }
  public String name() { return this.name; }
  public Set capabilities() { return new HashSet(Arrays.asList(TableCatalogCapability.values())); }

  private Object ask(String what, Identifier ident, Object[] more) {
    Identifier asked = byPath(ident) ? Identifier.of(new String[0], ident.name()) : ident;
    return Python.ask(what, this.session, asked, more);
  }
  private boolean byPath(Identifier ident) {
    boolean isPath = ident.name().indexOf('/') >= 0 || ident.name().indexOf(':') >= 0;
    return isPath && (this.name.equals("delta") ? ident.namespace().length == 0 : isSpelled(ident));
  }
  /** Catalogs are known by the case of their names, so `DELTA.` is a database of the session's. */
  private static boolean isSpelled(Identifier ident) {
    return ident.namespace().length == 1 && "delta".equalsIgnoreCase(ident.namespace()[0]);
  }
  /** In the catalog `delta`, a name that is no path is one of the database `delta`. */
  private Identifier within(Identifier ident) {
    return this.name.equals("delta") && ident.namespace().length == 0
        ? Identifier.of(new String[] {"delta"}, ident.name()) : ident;
  }
  private static boolean isDelta(Table table) {
    if (!(table instanceof V1Table)) return false;
    scala.Option provider = ((V1Table) table).catalogTable().provider();
    return provider.isDefined() && DeltaFormat.isNamed((String) provider.get());
  }
  /** Whether a table is to be one of Delta; a statement may leave that to the session's conf. */
  private boolean isDelta(Identifier ident, Map properties) {
    if (byPath(ident)) return true;
    String provider = (String) properties.get("provider");
    return DeltaFormat.isNamed(
        provider != null ? provider : this.session.sessionState().conf().defaultDataSourceName());
  }

  /** How: null, a version as text, a time in microseconds, or what a writer may do. */
  private Table load(Identifier ident, Object how) throws NoSuchTableException {
    Table found = byPath(ident) ? null : super.loadTable(within(ident));
    if (found != null && !isDelta(found)) {
      if (how instanceof String) return super.loadTable(within(ident), (String) how);
      if (how instanceof Long) return super.loadTable(within(ident), ((Long) how).longValue());
      return found;
    }
    Object catalogTable = found == null ? null : ((V1Table) found).catalogTable();
    if (found != null && how == null && isSavedInAnotherFormat()) {
      ask("save another format", ident, new Object[0]);
    }
    // A writer that saves to a path makes the table if there is none; a statement does not.
    boolean mayBeMissing = found == null && how instanceof Set && isSavedAsTable();
    boolean isLookedAt = found == null && how == null && isCalledBy("lookupTableOrView");
    Table table = (Table) ask("load", ident, new Object[] {
        catalogTable, how, Boolean.valueOf(mayBeMissing), Boolean.valueOf(isLookedAt)});
    if (table == null) throw new NoSuchTableException(ident);
    if (found != null) ((DeltaTable) table).setEntry(((V1Table) found).catalogTable());
    return table;
  }
  public Table loadTable(Identifier ident) throws NoSuchTableException { return load(ident, null); }
  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return load(ident, version);
  }
  public Table loadTable(Identifier ident, long micros) throws NoSuchTableException {
    return load(ident, Long.valueOf(micros));
  }
  public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
    return load(ident, privileges);
  }
  public boolean tableExists(Identifier ident) {
    if (!byPath(ident)) return super.tableExists(within(ident));
    return ((Boolean) ask("exists", ident, null)).booleanValue();
  }

  public Table createTable(Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!isDelta(ident, properties)) {
      return super.createTable(within(ident), columns, parts, properties);
    }
    ask("create", ident, new Object[] {columns, parts, properties});
    return null;
  }
  private StagedTable stage(String how, Identifier ident, Object[] definition) {
    Column[] columns = (Column[]) definition[0];
    Transform[] parts = (Transform[]) definition[1];
    Map properties = (Map) definition[2];
    if (isDelta(ident, properties)) {
      return (StagedTable) ask("stage", ident, new Object[] {how, columns, parts, properties});
    }
    try {
      if (this.delegate instanceof StagingTableCatalog) {
        return stageThere(how, within(ident), columns, parts, properties);
      }
      if (!how.equals("create") && super.tableExists(within(ident))) {
        super.dropTable(within(ident));
      }
      super.createTable(within(ident), columns, parts, properties);
    } catch (Exception error) {
      Platform.throwException(error);
    }
    return null;  // Spark then loads the table
  }
  /** The session's own catalog may stage tables of other formats itself. */
  private StagedTable stageThere(
      String how, Identifier ident, Column[] columns, Transform[] parts, Map properties)
      throws Exception {
    StagingTableCatalog there = (StagingTableCatalog) this.delegate;
    if (how.equals("create")) return there.stageCreate(ident, columns, parts, properties);
    if (how.equals("replace")) return there.stageReplace(ident, columns, parts, properties);
    return there.stageCreateOrReplace(ident, columns, parts, properties);
  }
  public StagedTable stageCreate(Identifier ident, Column[] c, Transform[] p, Map m) {
    return stage("create", ident, new Object[] {c, p, m});
  }
  public StagedTable stageReplace(Identifier ident, Column[] c, Transform[] p, Map m) {
    return stage("replace", ident, new Object[] {c, p, m});
  }
  public StagedTable stageCreateOrReplace(Identifier ident, Column[] c, Transform[] p, Map m) {
    String how = isSavedAsTable() ? "saveAsTable" : "createOrReplace";
    return stage(how, ident, new Object[] {c, p, m});
  }

  /**
   * Whether `df.write.saveAsTable` asks: in mode overwrite it overwrites rows, and keeps the schema
   * unless told otherwise. The statement that Spark makes of it does not say so.
   */
  private static boolean isSavedAsTable() { return isCalledBy(".DataFrameWriter.saveAsTable"); }
  /**
   * Whether a writer of another format asks, which overwrites a table: Spark's own catalog drops it,
   * with its files, before the rows are read. All other writers ask for the table by themselves.
   */
  private static boolean isSavedInAnotherFormat() {
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int i = 0; i + 1 < calls.length; i++) {
      boolean isLookedUp = calls[i].getClassName().endsWith(".SparkSession")
          && calls[i].getMethodName().equals("table");
      String by = calls[i + 1].getClassName();
      boolean isWriter = by.endsWith(".DataFrameWriter") || by.endsWith(".SaveAsV1TableCommand");
      if (isLookedUp && isWriter) return true;
    }
    return false;
  }
  /** Whether a method of Spark asks, whose name ends so. */
  private static boolean isCalledBy(String method) {
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if ((calls[i].getClassName() + "." + calls[i].getMethodName()).endsWith(method)) return true;
    }
    return false;
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    Table found = byPath(ident) ? null : super.loadTable(within(ident));
    if (found != null && !isDelta(found)) return super.alterTable(within(ident), changes);
    Object catalogTable = found == null ? null : ((V1Table) found).catalogTable();
    ask("alter", ident, new Object[] {catalogTable, changes});
    return null;
  }
  public boolean dropTable(Identifier ident) {
    if (byPath(ident)) return ((Boolean) ask("drop", ident, null)).booleanValue();
    Object place = place(ident);
    return gone(super.dropTable(within(ident)), place);
  }
  public boolean purgeTable(Identifier ident) {
    if (byPath(ident)) return ((Boolean) ask("drop", ident, null)).booleanValue();
    Object place = place(ident);
    return gone(super.purgeTable(within(ident)), place);
  }
  private boolean gone(boolean isDropped, Object place) {
    if (isDropped && place != null) CachedTables.forget(this.session, (String) place);
    return isDropped;
  }
  /** Where a Delta table is; null for any other. */
  private Object place(Identifier ident) {
    if (byPath(ident)) return ask("place", ident, null);
    try {
      Table found = super.loadTable(within(ident));
      if (!isDelta(found)) return null;
      return Python.ask("place", this.session, ident, ((V1Table) found).catalogTable());
    } catch (NoSuchTableException error) {
      return null;
    }
  }
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    super.renameTable(within(from), within(to));
  }
  public void invalidateTable(Identifier ident) {
    if (!byPath(ident)) super.invalidateTable(within(ident));
    Object place = place(ident);
    if (place != null) CachedTables.refresh(this.session, (String) place);
  }
}
