import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.ScheduledFuture;
import java.util.zip.CRC32C;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/**
 * Opens partition directories with the real UnifiedLog and closes them again, in place; below the working directory.
 *
 * stdin: one JSON object a line: {"directory", "clean", "logStart", "recoveryPoint", "now", "config"}.
 * stdout: for each, in order, {"state", "files"} or, when opening throws, {"error"}.
 * "state" is what the open log knows with everything replicated, or what is below "highWatermark" if the question has
 * it; "files" are those left after close: size and hash,
 * of a snapshot with its entries sorted by producer id. With the argument --warnings each answer has "warnings" too:
 * what Kafka's loggers said of level WARN and above.
 */
public final class LogCheck {
    private static final int CASES_PER_COLLECTION = 50;
    private static final int MAX_TRANSACTION_TIMEOUT_MS = 900_000;
    private static final int PRODUCER_CHECK_INTERVAL_MS = 600_000;
    private static final int SNAPSHOT_CHECKED_AT = 6;
    private static final int SNAPSHOT_HEADER_SIZE = 10;
    private static final int SNAPSHOT_ENTRY_SIZE = 46;
    private static final String PRODUCER_EXPIRATION = "producer.id.expiration.ms";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Keeps what is to be done later until it is asked for, so that every run has the same order. */
    static final class Later implements Scheduler {
        private final Queue<Runnable> tasks = new ArrayDeque<>();

        @Override public void startup() { }

        @Override public void shutdown() { }

        @Override public void resizeThreadPool(int newSize) { }

        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0) tasks.add(task);
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                LogCheck.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, args) -> true);
        }

        void runAll() {
            while (!tasks.isEmpty()) tasks.remove().run();
        }
    }

    /** Keeps what the loggers say, in place of where they said it. */
    static final class Ear extends AbstractAppender {
        private final List<String> heard = new ArrayList<>();

        Ear() {
            super("ear", null, null, true, Property.EMPTY_ARRAY);
            start();
            LoggerContext context = (LoggerContext) LogManager.getContext(false);
            LoggerConfig root = context.getConfiguration().getRootLogger();
            List.copyOf(root.getAppenders().keySet()).forEach(root::removeAppender);
            root.setLevel(Level.WARN);
            root.addAppender(this, Level.WARN, null);
            context.updateLoggers();
        }

        @Override public synchronized void append(LogEvent event) {
            String thrown = event.getThrown() == null ? "" : " [" + event.getThrown() + "]";
            heard.add(event.getLevel() + " " + event.getMessage().getFormattedMessage() + thrown);
        }

        synchronized List<String> takeAll() {
            List<String> taken = List.copyOf(heard);
            heard.clear();
            return taken;
        }
    }

    public static void main(String[] args) throws Exception {
        Ear ear = List.of(args).contains("--warnings") ? new Ear() : null;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int cases = 0;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = check(question);
            if (ear != null) ear.takeAll().forEach(answer.withArray("warnings")::add);
            System.out.write(JSON.writeValueAsBytes(answer));
            System.out.write('\n');
            System.out.flush();
            if (++cases % CASES_PER_COLLECTION == 0) System.gc();
        }
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode check(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        File directory = new File(question.get("directory").asText()).getAbsoluteFile();
        Later later = new Later();
        try {
            UnifiedLog log = open(directory, question, later);
            later.runAll();
            JsonNode highWatermark = question.get("highWatermark");
            log.updateHighWatermark(highWatermark == null ? log.logEndOffset() : highWatermark.asLong());
            ObjectNode state = state(log);
            Moved.close(log);
            later.runAll();
            answer.set("state", state);
            answer.set("files", files(directory));
        } catch (Throwable thrown) {
            answer.removeAll();
            answer.put("error", String.valueOf(thrown).replace(directory.getPath(), "@DIR@"));
            if (System.getenv("LOGCHECK_TRACE") != null) thrown.printStackTrace();
        }
        return answer;
    }

    static UnifiedLog open(File directory, JsonNode question, Scheduler scheduler) throws Exception {
        Properties config = new Properties();
        question.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        String expiration = (String) config.remove(PRODUCER_EXPIRATION);
        int expirationMs = expiration == null ? 86_400_000 : Integer.parseInt(expiration);
        return UnifiedLog.create(
            directory, new LogConfig(config), question.get("logStart").asLong(), question.get("recoveryPoint").asLong(),
            scheduler, new BrokerTopicStats(false), clock(question.get("now").asLong()), MAX_TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(expirationMs, false), PRODUCER_CHECK_INTERVAL_MS,
            new LogDirFailureChannel(1), question.get("clean").asBoolean(), Optional.empty());
    }

    private static Time clock(long now) {
        return (Time) Proxy.newProxyInstance(
            LogCheck.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, args) -> method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, args));
    }

    static ObjectNode state(UnifiedLog log) throws Exception {
        ObjectNode state = JSON.createObjectNode();
        state.put("topicId", log.topicId().map(Uuid::toString).orElse(null));
        state.put("logStartOffset", log.logStartOffset());
        state.put("logEndOffset", log.logEndOffset());
        state.put("lastStableOffset", log.lastStableOffset());
        state.put("highWatermark", log.highWatermark());
        state.put("recoveryPoint", log.recoveryPoint());
        ArrayNode segments = state.putArray("segments");
        for (LogSegment segment : log.logSegments()) segments.add(segment(segment));
        ArrayNode epochs = state.putArray("leaderEpochs");
        for (EpochEntry entry : log.leaderEpochCache().epochEntries()) {
            epochs.addArray().add(entry.epoch()).add(entry.startOffset());
        }
        ArrayNode producers = state.putArray("producers");
        log.activeProducers().stream().sorted(Comparator.comparingLong(ProducerState::producerId)).forEach(producer ->
            producers.addObject()
                .put("producerId", producer.producerId()).put("producerEpoch", producer.producerEpoch())
                .put("lastSequence", producer.lastSequence()).put("lastTimestamp", producer.lastTimestamp())
                .put("coordinatorEpoch", producer.coordinatorEpoch())
                .put("currentTxnStartOffset", producer.currentTxnStartOffset()));
        return state;
    }

    private static ObjectNode segment(LogSegment segment) throws Exception {
        ObjectNode described = JSON.createObjectNode();
        described.put("base", segment.baseOffset());
        described.put("bytes", segment.size());
        try {
            described.put("next", segment.readNextOffset());
        } catch (Exception damagedIndex) {
            described.putNull("next");
        }
        described.put("indexEntries", segment.offsetIndex().entries());
        described.put("timeIndexEntries", segment.timeIndex().entries());
        ArrayNode aborted = described.putArray("abortedTxns");
        for (var transaction : segment.txnIndex().allAbortedTxns()) {
            aborted.addArray().add(transaction.producerId()).add(transaction.firstOffset())
                .add(transaction.lastOffset()).add(transaction.lastStableOffset());
        }
        return described;
    }

    private static ObjectNode files(File directory) throws Exception {
        ObjectNode files = JSON.createObjectNode();
        File[] listed = directory.listFiles(File::isFile);
        Arrays.sort(listed);
        for (File file : listed) {
            byte[] content = Files.readAllBytes(file.toPath());
            if (file.getName().endsWith(".snapshot")) content = sortedSnapshot(content);
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(content);
            files.put(file.getName(), file.length() + ":" + HexFormat.of().formatHex(hash, 0, 8));
        }
        return files;
    }

    /** The snapshot with its entries sorted by producer id, as tests/support/snapshots.py does it; damage as it is. */
    private static byte[] sortedSnapshot(byte[] content) {
        ByteBuffer buffer = ByteBuffer.wrap(content);
        boolean isSound = content.length >= SNAPSHOT_HEADER_SIZE && buffer.getShort(0) == 1
            && content.length == SNAPSHOT_HEADER_SIZE + (long) SNAPSHOT_ENTRY_SIZE * buffer.getInt(SNAPSHOT_CHECKED_AT)
            && buffer.getInt(2) == snapshotCrc(content);
        if (!isSound) return content;
        List<byte[]> entries = new ArrayList<>();
        for (int start = SNAPSHOT_HEADER_SIZE; start < content.length; start += SNAPSHOT_ENTRY_SIZE) {
            entries.add(Arrays.copyOfRange(content, start, start + SNAPSHOT_ENTRY_SIZE));
        }
        entries.sort(Arrays::compareUnsigned);
        ByteBuffer sorted = ByteBuffer.wrap(content.clone()).position(SNAPSHOT_HEADER_SIZE);
        entries.forEach(sorted::put);
        return sorted.putInt(2, snapshotCrc(sorted.array())).array();
    }

    private static int snapshotCrc(byte[] content) {
        CRC32C crc = new CRC32C();
        crc.update(content, SNAPSHOT_CHECKED_AT, content.length - SNAPSHOT_CHECKED_AT);
        return (int) crc.getValue();
    }
}
