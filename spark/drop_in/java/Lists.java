import java.util.List;

/** Java's lists as Scala's. */
final class Lists {
  private Lists() {}

  static scala.collection.immutable.Seq seq(List items) {
    return scala.jdk.javaapi.CollectionConverters.asScala(items).toList();
  }
}
