import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Pattern;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.exceptions.SqlScriptingException;
import org.apache.spark.sql.internal.VariableSubstitution;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's parser, but for statements that begin like one of ours: those Python sees first.
 *
 * Whatever a session does with a name or a statement goes through its parser, so this is also where
 * a new session gets its catalogs.
 */
public final class StatementParser implements InvocationHandler {
  private static final Pattern OURS = Pattern.compile(
      "(?i)(?:analyze|optimize|vacuum|restore|convert|generate|reorg|explain|alter|desc(?:ribe)?"
      + "|create|replace)\\b");
  private final SparkSession session;
  private final ParserInterface inner;
  private volatile boolean isReady;

  private StatementParser(SparkSession session, ParserInterface inner) {
    this.session = session;
    this.inner = inner;
  }

  /** The parser of a session with ours around it, once. */
  static ParserInterface around(SparkSession session, ParserInterface inner) {
    if (of(inner) != null) return inner;
    Class type = ParserInterface.class;
    return (ParserInterface) Proxy.newProxyInstance(
        type.getClassLoader(), new Class[] {type}, new StatementParser(session, inner));
  }
  /** What the parser was before; null if ours is not around it. */
  static ParserInterface inside(ParserInterface parser) {
    StatementParser ours = of(parser);
    return ours == null ? null : ours.inner;
  }
  private static StatementParser of(ParserInterface parser) {
    if (!Proxy.isProxyClass(parser.getClass())) return null;
    InvocationHandler handler = Proxy.getInvocationHandler(parser);
    return handler instanceof StatementParser ? (StatementParser) handler : null;
  }

  /** A statement with the values of `${...}`, which Spark's own parser puts in before it reads. */
  private static String substituted(String text) {
    return text.contains("${") ? new VariableSubstitution().substitute(text) : text;
  }

  /**
   * Where a statement's first word stands, behind blanks and comments as Spark's lexer knows them
   * (and `core/sql/tokens.py`): lines that end as on any system, or go on behind a backslash, and
   * brackets within brackets. A hint is no comment.
   */
  static int begin(String text) {
    int at = 0;
    while (at < text.length()) {
      if (isBlank(text.charAt(at))) at++;
      else if (text.startsWith("--", at)) at = lineEnd(text, at);
      else if (text.startsWith("/*", at) && !text.startsWith("/*+", at)) at = after(text, at);
      else return at;
    }
    return text.length();
  }
  private static boolean isBlank(char one) {
    return Character.isWhitespace(one) || Character.isSpaceChar(one);
  }
  private static int lineEnd(String text, int start) {
    int at = start;
    while (at < text.length() && text.charAt(at) != '\n' && text.charAt(at) != '\r') {
      at += text.startsWith("\\\n", at) ? 2 : 1;
    }
    return at;
  }
  /** Behind a comment in brackets; the text's end if nobody closes it. */
  private static int after(String text, int start) {
    int depth = 0;
    for (int at = start; at < text.length(); ) {
      if (text.startsWith("/*", at)) depth++;
      else if (text.startsWith("*/", at)) depth--;
      else { at++; continue; }
      at += 2;
      if (depth == 0) return at;
    }
    return text.length();
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (!this.isReady) {
      // A statement of another thread waits here until the catalogs are there.
      this.isReady = Sessions.prepare(this.session);
    }
    String name = method.getName();
    if (name.equals("parsePlan") || name.equals("parsePlanWithParameters")) {
      String text = substituted((String) arguments[0]);
      if (OURS.matcher(text).region(begin(text), text.length()).lookingAt()) {
        Object found = Python.ask(
            "parse", this.session, text, arguments.length > 1 ? arguments[1] : null);
        if (found != null) return found;
      }
    }
    try {
      return method.invoke(this.inner, arguments);
    } catch (InvocationTargetException error) {
      throw thrown(error.getCause());
    }
  }
  /**
   * An error as a proxy may throw it: Spark's parser does not declare the one of scripts, which the
   * proxy would hide in another that has no condition.
   */
  private static Throwable thrown(Throwable error) {
    if (!(error instanceof SqlScriptingException)) return error;
    SqlScriptingException script = (SqlScriptingException) error;
    return new SparkRuntimeException(
        script.getCondition(),
        scala.collection.immutable.Map$.MODULE$.from(
            CollectionConverters.asScala(script.getMessageParameters())),
        script, new QueryContext[0], "");
  }
}
