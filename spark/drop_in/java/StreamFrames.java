import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * The schemas that frames of streams were made with. A query is started from a frame later, and its
 * columns are taken by their places, so they must still be the same.
 *
 * Spark hands the one options object of a frame to both calls, which is how a frame is known again.
 */
final class StreamFrames {
  private static final List FRAMES = new ArrayList();

  private StreamFrames() {}

  static synchronized void remember(Object options, String schema) {
    for (Iterator each = FRAMES.iterator(); each.hasNext();) {
      if (((WeakReference) ((Object[]) each.next())[0]).get() == null) each.remove();
    }
    if (schema(options) == null) {
      FRAMES.add(new Object[] {new WeakReference(options), schema});
    }
  }

  /** As JSON; null for a frame that nobody has seen. */
  static synchronized String schema(Object options) {
    for (int i = 0; i < FRAMES.size(); i++) {
      Object[] frame = (Object[]) FRAMES.get(i);
      if (((WeakReference) frame[0]).get() == options) return (String) frame[1];
    }
    return null;
  }
}
