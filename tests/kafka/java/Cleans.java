import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans partition directories, or deletes what is not retained in them, with the real log, in place.
 *
 * stdin: one JSON object a line: {"directory", "now", "logStart", "highWatermark", "config"} and
 *   {"op": "clean", "checkpoint": offset|null, "dedupe": bytes}: what may be cleaned, then a round of cleaning if there is any
 *   {"op": "retain", "deleteTo": offset|null}: the log start is raised first, then old segments are deleted
 * stdout: for each, in order, what was chosen and done, or {"error"}. The log is closed then, and nothing is left to be deleted.
 */
public final class Cleans {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Keeps what is to be done later until it is asked for. */
    private static final class Later implements Scheduler {
        private final Queue<Runnable> tasks = new ArrayDeque<>();

        @Override public void startup() { }

        @Override public void shutdown() { }

        @Override public void resizeThreadPool(int newSize) { }

        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0) tasks.add(task);
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                Cleans.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, args) -> true);
        }

        void runAll() {
            while (!tasks.isEmpty()) tasks.remove().run();
        }
    }

    public static void main(String[] unused) throws Exception {
        Lines.answer(question -> {
            System.gc();  // lets go of the files of the log before
            return answer(question);
        });
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        Later later = new Later();
        try {
            Time time = clock(question.get("now").asLong());
            UnifiedLog log = open(question, later, time);
            log.updateHighWatermark(question.get("highWatermark").asLong());
            try {
                if (question.get("op").asText().equals("clean")) clean(log, question.get("checkpoint"), question, time, answer);
                else retain(log, question, answer);
            } catch (Throwable refused) {
                if (System.getenv("CLEANS_TRACE") != null) refused.printStackTrace();
                answer.put("error", String.valueOf(refused).replace(log.dir().getPath(), "@DIR@"));
            }
            answer.put("logStart", log.logStartOffset());
            later.runAll();
            Moved.close(log);
            later.runAll();
        } catch (Throwable thrown) {
            if (System.getenv("CLEANS_TRACE") != null) thrown.printStackTrace();
            answer.put("error", "open: " + thrown);
        }
        return answer;
    }

    /** Says what of a log may be cleaned, and cleans it. */
    static void clean(UnifiedLog log, JsonNode checkpoint, JsonNode question, Time time, ObjectNode answer) throws Exception {
        Object offsets = method("cleanableOffsets", UnifiedLog.class, Optional.class, long.class).invoke(
            null, log, checkpoint.isNull() ? Optional.empty() : Optional.of(checkpoint.asLong()), time.milliseconds());
        long firstDirty = (long) field(offsets, "firstDirtyOffset");
        long delay = (long) method("maxCompactionDelay", UnifiedLog.class, long.class, long.class)
            .invoke(null, log, firstDirty, time.milliseconds());
        LogToClean chosen = new LogToClean(log, firstDirty, (long) field(offsets, "firstUncleanableDirtyOffset"), delay > 0);
        answer.put("firstDirty", firstDirty).put("firstUncleanable", chosen.firstUncleanableOffset());
        answer.put("cleanBytes", chosen.cleanBytes()).put("cleanableBytes", chosen.cleanableBytes()).put("delay", delay);
        answer.put("isCheckpointWrong", (boolean) field(offsets, "forceUpdateCheckpoint"));
        boolean isWorthIt = chosen.totalBytes() > 0
            && (delay > 0 && chosen.cleanableBytes() > 0 || chosen.cleanableRatio() > log.config().minCleanableRatio);
        answer.put("isWorthIt", isWorthIt);
        if (chosen.cleanableBytes() == 0) return;
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(question.get("dedupe").asInt()), 65536, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "throttler", "entries", Time.SYSTEM), time, topicPartition -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(chosen, time.milliseconds());
        answer.put("end", done.getKey());
    }

    private static void retain(UnifiedLog log, JsonNode question, ObjectNode answer) throws Exception {
        if (!question.get("deleteTo").isNull()) {
            log.maybeIncrementLogStartOffset(question.get("deleteTo").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
        }
        answer.put("deleted", log.deleteOldSegments());
        ArrayNode segments = answer.putArray("segments");
        log.logSegments().forEach(segment -> segments.add(segment.baseOffset()));
    }

    private static Method method(String name, Class<?>... parameters) throws Exception {
        Method method = LogCleanerManager.class.getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }

    private static Object field(Object record, String name) throws Exception {
        Method accessor = record.getClass().getDeclaredMethod(name);
        accessor.setAccessible(true);
        return accessor.invoke(record);
    }

    private static UnifiedLog open(JsonNode question, Scheduler scheduler, Time time) throws Exception {
        Properties config = new Properties();
        question.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return UnifiedLog.create(
            new File(question.get("directory").asText()), new LogConfig(config), question.get("logStart").asLong(), 0L,
            scheduler, new BrokerTopicStats(false), time, 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), true, Optional.empty());
    }

    private static Time clock(long now) {
        return (Time) Proxy.newProxyInstance(
            Cleans.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, args) -> method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, args));
    }
}
