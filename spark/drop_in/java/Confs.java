import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.apache.spark.internal.config.ConfigBuilder;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.internal.config.TypedConfigBuilder;
import org.apache.spark.network.util.ByteUnit;
import org.apache.spark.sql.internal.SQLConf$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes the keys of Delta's session conf known to Spark, so that they have their defaults and that
 * a wrong value is refused where it is set. Each line of the table is one key: its name, its kind,
 * its default (or `-`), and what holds of its values.
 */
public final class Confs {
  private static final String PREFIX = "spark.databricks.";

  private Confs() {}

  public static void register(String table) {
    String[] lines = table.split("\n");
    List later = new ArrayList();
    for (int i = 0; i < lines.length; i++) {
      String[] cells = lines[i].split("\t", -1);
      if (cells[1].endsWith("as")) later.add(cells);
      else register(cells);
    }
    for (int i = 0; i < later.size(); i++) register((String[]) later.get(i));
  }

  private static void register(String[] cells) {
    String key = PREFIX + cells[0], kind = cells[1];
    if (SQLConf$.MODULE$.containsConfigKey(key)) return;
    boolean isStatic = kind.indexOf("static ") >= 0;
    ConfigBuilder builder = isStatic
        ? SQLConf$.MODULE$.buildStaticConf(key) : SQLConf$.MODULE$.buildConf(key);
    if (kind.startsWith("internal ")) builder.internal();
    String type = kind.substring(kind.lastIndexOf(' ') + 1);
    if (type.equals("as")) {
      builder.fallbackConf((ConfigEntry) SQLConf$.MODULE$.getConfigEntry(PREFIX + cells[2]));
      return;
    }
    TypedConfigBuilder typed = checked(typed(builder, type), type, cells[3]);
    if (cells[2].equals("-")) typed.createOptional();
    else typed.createWithDefaultString(cells[2]);
  }

  private static TypedConfigBuilder typed(ConfigBuilder builder, String type) {
    if (type.equals("boolean")) return builder.booleanConf();
    if (type.equals("int")) return builder.intConf();
    if (type.equals("long")) return builder.longConf();
    if (type.equals("double")) return builder.doubleConf();
    if (type.equals("bytes")) return builder.bytesConf(ByteUnit.BYTE);
    if (type.equals("time")) return builder.timeConf(TimeUnit.MILLISECONDS);
    final boolean isUpper = type.equals("upper");
    if (!isUpper && !type.equals("lower")) return builder.stringConf();
    return builder.stringConf().transform(new scala.runtime.AbstractFunction1() {
      public Object apply(Object text) {
        return isUpper ? ((String) text).toUpperCase(Locale.ROOT)
            : ((String) text).toLowerCase(Locale.ROOT);
      }
    });
  }

  /** The rule is `a|b`, the values that there are; or `>=1` or `0..1`, where numbers have to be. */
  private static TypedConfigBuilder checked(TypedConfigBuilder typed, String type, String rule) {
    if (rule.length() == 0) return typed;
    if (rule.indexOf('|') >= 0) {
      List values = new ArrayList(Arrays.asList(rule.split("\\|")));
      if (type.equals("int")) {
        for (int i = 0; i < values.size(); i++) values.set(i, Integer.valueOf((String) values.get(i)));
      }
      return typed.checkValues((scala.collection.immutable.Set)
          scala.collection.immutable.Set$.MODULE$.from(CollectionConverters.asScala(values)));
    }
    String[] ends = rule.startsWith(">=")
        ? new String[] {rule.substring(2), "Infinity"} : rule.split("\\.\\.");
    final double least = Double.parseDouble(ends[0]), most = Double.parseDouble(ends[1]);
    return typed.checkValue(new scala.runtime.AbstractFunction1() {
      public Object apply(Object value) {
        double number = ((Number) value).doubleValue();
        return Boolean.valueOf(least <= number && number <= most);
      }
    }, "It must be " + rule + ".");
  }
}
