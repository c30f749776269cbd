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
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Runs workloads of tests/kafka/workloads.py, which says what is in them, on UnifiedLog: one a line on stdin.
 *
 * stdout: for each a line {"answers": [{…, "state": …}, …], "end": …}, "end" as of LogCheck. The files stay. A log that
 * does not open again ends its workload: "end" is null.
 */
public final class Workloads {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int WORKLOADS_PER_COLLECTION = 20;
    static final int MAX_TRANSACTION_TIMEOUT_MS = 900_000;
    static final int BATCH_OVERHEAD = 12;

    /** Does at once, after each step, what has no delay, and the rest when it is asked for. */
    static final class Steps implements Scheduler {
        private final List<Runnable> soon = new ArrayList<>();
        private final List<Runnable> late = new ArrayList<>();

        @Override public void startup() { }

        @Override public void shutdown() { }

        @Override public void resizeThreadPool(int newSize) { }

        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs <= 0) (delayMs <= 0 ? soon : late).add(task);
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                Workloads.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, args) -> true);
        }

        void runSoon() {
            for (int i = 0; i < soon.size(); i++) soon.get(i).run();
            soon.clear();
        }

        void runLate() {
            late.forEach(Runnable::run);
            late.clear();
        }
    }

    private final JsonNode workload;
    private final File directory;
    private final Steps steps = new Steps();
    private long now;
    private UnifiedLog log;
    private boolean isOpen;
    private JsonNode cleaned = JSON.nullNode();

    private Workloads(JsonNode workload) {
        this.workload = workload;
        this.directory = new File(workload.get("directory").asText()).getAbsoluteFile();
        this.now = workload.get("now").asLong();
    }

    public static void main(String[] unused) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int count = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.write(JSON.writeValueAsBytes(new Workloads(JSON.readTree(line)).run()));
            System.out.write('\n');
            System.out.flush();
            if (++count % WORKLOADS_PER_COLLECTION == 0) System.gc();
        }
        Runtime.getRuntime().halt(0);
    }

    private ObjectNode run() throws Exception {
        ObjectNode result = JSON.createObjectNode();
        ArrayNode answers = result.putArray("answers");
        open(true, 0, 0);
        for (JsonNode step : workload.get("steps")) {
            ObjectNode answer = answers.addObject();
            try {
                step(step, answer);
            } catch (RecordValidationException refused) {
                answer.put("error", refused.invalidException().toString());
            } catch (RuntimeException refused) {
                answer.put("error", named(refused.toString()));
                if (System.getenv("WORKLOADS_TRACE") != null) refused.printStackTrace();
            }
            if (!isOpen) return result.putNull("end");
            steps.runSoon();
            state(answer.putObject("state"));
        }
        result.set("end", LogCheck.state(log));
        if (!workload.path("isClosedAfter").asBoolean(true)) {
            Moved.letGo(log);
            return result;
        }
        log.flush(true);
        Moved.close(log);
        steps.runSoon();
        steps.runLate();
        return result;
    }

    private String named(String text) {
        return text.replace(directory.getPath(), "@DIR@").replace(directory.getParent(), "@PARENT@");
    }

    private void open(boolean clean, long logStart, long recoveryPoint) throws Exception {
        int expirationMs = workload.get("config").path("producer.id.expiration.ms").asInt(86_400_000);
        JsonNode topicId = workload.get("topicId");
        log = UnifiedLog.create(
            directory, config(workload.get("config")), logStart, recoveryPoint, steps, new BrokerTopicStats(false), clock(),
            MAX_TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(expirationMs, workload.get("requiresVerification").asBoolean()), 600_000,
            new LogDirFailureChannel(1), clean,
            topicId.isNull() ? Optional.empty() : Optional.of(Uuid.fromString(topicId.asText())));
        isOpen = true;
        steps.runSoon();
        log.updateHighWatermark(log.logEndOffset());
    }

    private static LogConfig config(JsonNode values) {
        Properties config = new Properties();
        values.fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        config.remove("producer.id.expiration.ms");
        return new LogConfig(config);
    }

    private void found(long timestamp, ObjectNode answer) throws Exception {
        log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt().ifPresent(found -> answer
            .put("offset", found.offset).put("timestamp", found.timestamp).put("epoch", found.leaderEpoch.orElse(null)));
    }

    private Time clock() {
        return (Time) Proxy.newProxyInstance(
            Workloads.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, args) -> method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, args));
    }

    private void step(JsonNode step, ObjectNode answer) throws Exception {
        switch (step.get("op").asText()) {
            case "append", "records", "columns" -> appended(appendAsLeader(step), answer);
            case "marker" -> appended(appendMarker(step), answer);
            case "follow" -> appended(log.appendAsFollower(shifted(step), step.get("epoch").asInt()), answer);
            case "verify" -> log.maybeStartTransactionVerification(
                step.get("producerId").asLong(), step.get("sequence").asInt(), (short) step.get("producerEpoch").asInt(),
                step.get("supportsEpochBump").asBoolean());
            case "start" -> answer.put("result",
                log.maybeIncrementLogStartOffset(offset(step), LogStartOffsetIncrementReason.ClientRecordDeletion));
            case "restart" -> log.truncateFullyAndStartAt(offset(step), Optional.empty());
            case "roll" -> log.roll();
            case "flush" -> log.flush(false);
            case "retain" -> log.deleteOldSegments();
            case "expire" -> log.removeExpiredProducers(now);
            case "time" -> now += step.get("plus").asLong();
            case "clean" -> clean(step, answer);
            case "reopen" -> reopen(step.get("clean").asBoolean());
            case "configure" -> log.updateConfig(config(step.get("config")));
            case "find" -> found(step.get("timestamp").asLong(), answer);
            default -> throw new IllegalStateException(step.toString());
        }
    }

    private void clean(JsonNode step, ObjectNode answer) throws Exception {
        Cleans.clean(log, cleaned, step, clock(), answer);
        cleaned = answer.has("end") ? answer.get("end") : answer.get("firstDirty");
    }

    private void reopen(boolean clean) throws Exception {
        if (clean) {
            log.flush(true);
            Moved.close(log);
        } else {
            Moved.letGo(log);
        }
        steps.runLate();
        isOpen = false;
        open(clean, log.logStartOffset(), log.recoveryPoint());
    }

    private LogAppendInfo appendAsLeader(JsonNode step) throws Exception {
        MemoryRecords records = records(step);
        VerificationGuard guard = VerificationGuard.SENTINEL;
        JsonNode begin = step.get("begin");
        if (begin != null && !begin.isNull()) {
            RecordBatch batch = records.batches().iterator().next();
            guard = log.maybeStartTransactionVerification(
                batch.producerId(), batch.baseSequence(), batch.producerEpoch(), begin.asBoolean());
        }
        return log.appendAsLeader(
            records, step.get("epoch").asInt(), AppendOrigin.valueOf(step.get("origin").asText()), RequestLocal.noCaching(),
            guard, (short) step.get("version").asInt());
    }

    private LogAppendInfo appendMarker(JsonNode step) {
        ControlRecordType type = step.get("isCommit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            now, step.get("producerId").asLong(), (short) step.get("producerEpoch").asInt(),
            new EndTransactionMarker(type, step.get("coordinatorEpoch").asInt()));
        return log.appendAsLeader(
            records, step.get("epoch").asInt(), AppendOrigin.COORDINATOR, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) step.get("version").asInt());
    }

    private void appended(LogAppendInfo info, ObjectNode answer) throws Exception {
        answer.put("first", info.firstOffset()).put("last", info.lastOffset()).put("maxTimestamp", info.maxTimestamp())
            .put("logAppendTime", info.logAppendTime()).put("logStart", info.logStartOffset());
        if (info.validBytes() > 0) log.maybeIncrementHighWatermark(log.logEndOffsetMetadata());
    }

    private MemoryRecords records(JsonNode step) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(step.get("batches").asText())));
    }

    /** Batches whose offsets count from the log's end. */
    private MemoryRecords shifted(JsonNode step) {
        ByteBuffer buffer = records(step).buffer();
        for (int at = 0; at + BATCH_OVERHEAD <= buffer.limit(); at += BATCH_OVERHEAD + buffer.getInt(at + 8)) {
            buffer.putLong(at, buffer.getLong(at) + log.logEndOffset());
        }
        return MemoryRecords.readableRecords(buffer);
    }

    private long offset(JsonNode step) {
        long from = switch (step.get("from").asText()) {
            case "end" -> log.logEndOffset();
            case "highWatermark" -> log.highWatermark();
            case "start" -> log.logStartOffset();
            default -> 0;
        };
        return from + step.get("plus").asLong();
    }

    private void state(ObjectNode state) {
        state.put("logStartOffset", log.logStartOffset()).put("logEndOffset", log.logEndOffset())
            .put("highWatermark", log.highWatermark()).put("lastStableOffset", log.lastStableOffset())
            .put("recoveryPoint", log.recoveryPoint()).put("segments", log.numberOfSegments())
            .put("producers", log.producerIdCount());
    }
}
