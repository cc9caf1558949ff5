import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;

/**
 * Puts rule, parser and catalogs into sessions, and takes them out again.
 *
 * Extensions serve the sessions that are made later (new ones and clones), as they are read when a
 * session's state is built. A session that has its state gets the same by reflection. Each field
 * is found by its declared name; one that is missing stops `enable` before anything has changed.
 */
public final class Sessions {
  private static final String CATALOG = "spark.sql.catalog.spark_catalog";
  private static final String BEFORE = CATALOG + ".before.optimist";
  private static final String BUILT_IN = "builtin";
  private static final String REDACTION = "spark.sql.redaction.options.regex";
  private static final String REDACTION_BEFORE = REDACTION + ".before.optimist";
  private static final String DELTAS = "org.apache.spark.sql.delta.catalog.DeltaCatalog";
  /** The extensions of sessions that are on; those that have ours injected are all of the keys. */
  private static final Map EXTENSIONS = Collections.synchronizedMap(new WeakHashMap());

  private static boolean isPreparing;
  /** A regular expression of the names that options with secrets have. */
  private static String secretNames = "";

  private Sessions() {}

  public static synchronized void enable(SparkSession session, String namesOfSecrets)
      throws Exception {
    secretNames = namesOfSecrets;
    SessionState state = session.sessionState();
    Field rules = field(state.analyzer(), "extendedResolutionRules");
    Field parser = field(state, "sqlParser");
    Field versions = field(state, "planNormalizationRules");
    field(state.catalogManager(), "catalogs");
    field(state.catalogManager(), "defaultSessionCatalog");
    field(session.sharedState().cacheManager(), "cachedData");
    ensureCatalog(state);

    inject(session.extensions());
    rules.set(state.analyzer(), with(new RelationRule(session), rules.get(state.analyzer())));
    versions.set(state, with(NewestVersions.preparing(session), versions.get(state)));
    parser.set(state, StatementParser.around(session, (ParserInterface) parser.get(state)));
    forgetDelta(session.sharedState().conf());
    prepare(session);
  }

  /** `NewestVersions` stays, for the frames that are there. */
  public static synchronized void disable(SparkSession session) throws Exception {
    EXTENSIONS.put(session.extensions(), Boolean.FALSE);
    SessionState state = session.sessionState();
    Field rules = field(state.analyzer(), "extendedResolutionRules");
    rules.set(state.analyzer(), without(RelationRule.class, rules.get(state.analyzer())));
    Field parser = field(state, "sqlParser");
    ParserInterface inner = StatementParser.inside((ParserInterface) parser.get(state));
    if (inner != null) parser.set(state, inner);
    if (isPrepared(state)) restoreCatalogs(state);
  }

  public static boolean isEnabled(SparkSession session) throws Exception {
    return Boolean.TRUE.equals(EXTENSIONS.get(session.extensions()))
        && isPrepared(session.sessionState());
  }

  /**
   * Catalogs and table functions of a session whose state is built; idempotent.
   *
   * @return false for a statement that preparing a session runs itself
   */
  static synchronized boolean prepare(SparkSession session) throws Exception {
    if (isPreparing) return false;
    if (!Boolean.TRUE.equals(EXTENSIONS.get(session.extensions()))) return true;
    SessionState state = session.sessionState();
    if (isPrepared(state)) return true;
    isPreparing = true;
    try {
      putCatalogs(session, state);
    } finally {
      isPreparing = false;
    }
    return true;
  }
  private static void putCatalogs(SparkSession session, SessionState state) throws Exception {
    SQLConf conf = state.conf();
    String before = conf.getConfString(BEFORE, conf.getConfString(CATALOG, BUILT_IN));
    if (before.equals(DELTAS)) before = BUILT_IN;
    CatalogPlugin delegate = delegate(state, before);
    scala.collection.mutable.Map catalogs = catalogs(state);
    catalogs.put("delta", new DeltaCatalog(session, "delta", delegate));
    catalogs.put("spark_catalog", new DeltaCatalog(session, "spark_catalog", delegate));
    conf.setConfString(BEFORE, before);
    conf.setConfString(CATALOG, DeltaCatalog.class.getName());
    hideSecrets(conf);
    ChangesFunction.register(session, state.tableFunctionRegistry());
  }

  /** Spark shows the options of calls in its plans, UI and event log, but for names it is told. */
  private static void hideSecrets(SQLConf conf) {
    if (conf.contains(REDACTION_BEFORE)) return;  // a clone has the conf of its session
    String before = conf.getConfString(REDACTION);
    conf.setConfString(REDACTION_BEFORE, conf.contains(REDACTION) ? before : "");
    conf.setConfString(REDACTION, "(?:" + before + ")" + ours());
  }
  private static String ours() { return "|(?:" + secretNames + ")"; }
  private static void showSecrets(SQLConf conf) {
    String before = conf.getConfString(REDACTION_BEFORE, "");
    conf.unsetConf(REDACTION_BEFORE);
    if (!conf.getConfString(REDACTION).endsWith(ours())) return;  // the user's, set since
    if (before.isEmpty()) conf.unsetConf(REDACTION);
    else conf.setConfString(REDACTION, before);
  }

  /** A catalog that the session names itself stays behind ours, so it has to be one of tables. */
  private static void ensureCatalog(SessionState state) throws ClassNotFoundException {
    String name = state.conf().getConfString(CATALOG, BUILT_IN);
    if (name.equals(BUILT_IN) || name.equals(DELTAS)) return;
    CatalogPlugin found;
    try {
      found = state.catalogManager().v2SessionCatalog();
    } catch (Exception error) {
      throw new ClassNotFoundException(name + ": " + error.getMessage());
    }
    if (!(found instanceof TableCatalog)) {
      throw new ClassNotFoundException(name + ": it is no TableCatalog");
    }
  }
  private static CatalogPlugin delegate(SessionState state, String before) throws Exception {
    CatalogManager manager = state.catalogManager();
    if (before.equals(BUILT_IN)) {
      return (CatalogPlugin) field(manager, "defaultSessionCatalog").get(manager);
    }
    state.conf().setConfString(CATALOG, before);
    catalogs(state).remove("spark_catalog");
    return manager.v2SessionCatalog();
  }
  private static void restoreCatalogs(SessionState state) throws Exception {
    String before = state.conf().getConfString(BEFORE, BUILT_IN);
    catalogs(state).remove("delta");
    catalogs(state).remove("spark_catalog");
    state.conf().unsetConf(BEFORE);
    if (before.equals(BUILT_IN)) state.conf().unsetConf(CATALOG);
    else state.conf().setConfString(CATALOG, before);
    showSecrets(state.conf());
    ChangesFunction.drop(state.tableFunctionRegistry());
  }
  private static boolean isPrepared(SessionState state) throws Exception {
    scala.Option found = catalogs(state).get("delta");
    return found.isDefined() && found.get() instanceof DeltaCatalog;
  }
  private static scala.collection.mutable.Map catalogs(SessionState state) throws Exception {
    CatalogManager manager = state.catalogManager();
    return (scala.collection.mutable.Map) field(manager, "catalogs").get(manager);
  }

  private static void inject(final SparkSessionExtensions extensions) {
    if (EXTENSIONS.put(extensions, Boolean.TRUE) != null) return;
    extensions.injectResolutionRule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) {
        return new RelationRule((SparkSession) session);
      }
    });
    extensions.injectPlanNormalizationRule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) {
        return NewestVersions.preparing((SparkSession) session);
      }
    });
    // Sessions ask for these rules at each query, so one that has its state gets ours as well.
    extensions.injectOptimizerRule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) {
        return NewestVersions.optimizing((SparkSession) session);
      }
    });
    extensions.injectPreCBORule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) { return new AnswerAggregates((SparkSession) session); }
    });
    extensions.injectPlannerStrategy(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) { return new AnsweredRows.Planned(); }
    });
    extensions.injectPreCBORule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) { return new PruneFiles(); }
    });
    extensions.injectPreCBORule(new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) { return new EstimateRows((SparkSession) session); }
    });
    extensions.injectParser(new scala.runtime.AbstractFunction2() {
      public Object apply(Object session, Object inner) {
        return StatementParser.around((SparkSession) session, (ParserInterface) inner);
      }
    });
  }
  private static scala.collection.immutable.Seq with(Rule rule, Object rules) {
    List all = javaList(without(rule.getClass(), rules));
    all.add(rule);
    return Lists.seq(all);
  }
  private static scala.collection.immutable.Seq without(Class kind, Object rules) {
    List kept = new ArrayList();
    List all = javaList(rules);
    for (int i = 0; i < all.size(); i++) {
      if (!kind.isInstance(all.get(i))) kept.add(all.get(i));
    }
    return Lists.seq(kept);
  }
  private static List javaList(Object seq) {
    scala.collection.immutable.Seq items = (scala.collection.immutable.Seq) seq;
    List list = new ArrayList();
    for (int i = 0; i < items.length(); i++) list.add(items.apply(i));
    return list;
  }

  /** Scripts name Delta's catalog in the context's conf; no class of that name is there. */
  private static void forgetDelta(SparkConf conf) {
    if (conf.get(CATALOG, BUILT_IN).equals(DELTAS)) conf.set(CATALOG, BUILT_IN);
  }

  static Field field(Object owner, String name) throws NoSuchFieldException {
    for (Class type = owner.getClass(); type != null; type = type.getSuperclass()) {
      Field[] fields = type.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].getName().equals(name)) {
          fields[i].setAccessible(true);
          return fields[i];
        }
      }
    }
    throw new NoSuchFieldException(owner.getClass().getName() + "." + name);
  }
}
