import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * LogWork: two LogManagers of Kafka, a leader's and a follower's, do what tests/silence/log_steps.py draws.
 *
 * stdin: one JSON list of steps a line; {"do": "begin", "roots": [[log dirs of one], [of the other]], …} is a new world.
 * stdout: for each line what was refused. Nothing happens between steps: tasks of the scheduler wait until they are asked for.
 */
public final class LogWork {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MAX_TRANSACTION_TIMEOUT_MS = 900_000;

    /** Tasks by name, those of a period too. */
    private static final class Tasks implements Scheduler {
        private final Map<String, Runnable> periodic = new TreeMap<>();
        private final List<Runnable> late = new ArrayList<>();
        private final List<Runnable> soon = new ArrayList<>();

        @Override public void startup() { }

        @Override public void shutdown() { }

        @Override public void resizeThreadPool(int newSize) { }

        @Override public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs > 0 || name.startsWith("kafka-")) periodic.put(name, task);
            else (delayMs > 0 ? late : soon).add(task);
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                LogWork.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, args) -> true);
        }

        private static void run(List<Runnable> tasks) {
            List<Runnable> all = List.copyOf(tasks);
            tasks.clear();
            all.forEach(Runnable::run);
        }
    }

    /** A broker's log manager and its cleaner, which cleans when it is asked to. */
    private final class Host {
        private final Tasks tasks = new Tasks();
        private Moved.Logs manager;
        private LogCleaner.CleanerThread cleaner;

        void start(JsonNode roots) throws Exception {
            List<File> directories = new ArrayList<>();
            roots.forEach(root -> directories.add(new File(root.asText())));
            Properties defaults = new Properties();
            LogConfig config = new LogConfig(defaults);
            ConfigRepository configs = resource -> {
                Properties found = new Properties();
                if (resource.type() == ConfigResource.Type.TOPIC) found.putAll(topics.getOrDefault(resource.name(), Map.of()));
                return found;
            };
            manager = new Moved.Logs(directories, configs, config, new CleanerConfig(1, dedupe, 0.9, 65536, 1 << 20, Double.MAX_VALUE, 100, true),
                MAX_TRANSACTION_TIMEOUT_MS, new ProducerStateManagerConfig(expirationMs, false), tasks, clock);
            manager.startWith(topics.keySet());
            cleaner = manager.cleaner().new CleanerThread(0);
            settle();
        }

        void settle() {
            Tasks.run(tasks.soon);
        }

        /** As a process that is killed: nothing is written any more. */
        void kill() throws Exception {
            manager.all().forEach(Moved::letGo);
            for (FileLock lock : manager.locks()) lock.destroy();
            manager.cleaner().removeMetrics();
        }

        UnifiedLog log(TopicPartition partition) {
            return manager.log(partition, false);
        }
    }

    /** A producer as its partitions and its coordinator know it. */
    private static final class Producer {
        final long id;
        short epoch;
        final Map<TopicPartition, Integer> sequences = new HashMap<>();
        final Map<TopicPartition, Boolean> open = new HashMap<>();

        Producer(long id) {
            this.id = id;
        }
    }

    private final Time clock = (Time) Proxy.newProxyInstance(
        LogWork.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, args) -> method.getName().equals("milliseconds") ? (Object) this.now : method.invoke(Time.SYSTEM, args));
    private final Map<String, Map<String, String>> topics = new HashMap<>();
    private final Map<String, Uuid> ids = new HashMap<>();
    private final Map<Long, Producer> producers = new HashMap<>();
    private long now = System.currentTimeMillis();
    private Host[] hosts = {};
    private JsonNode roots;
    private int leader;
    private int epoch;
    private int coordinatorEpoch;
    private int expirationMs;
    private long dedupe;
    private JsonNode step;

    public static void main(String[] unused) throws Exception {
        LogWork work = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> refused = new ArrayList<>();
            for (JsonNode step : JSON.readTree(line)) {
                if (step.get("do").asText().equals("begin")) work = new LogWork();
                work.step = step;
                try {
                    work.perform();
                } catch (Exception error) {
                    Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                    refused.add(step.get("do").asText() + ": " + cause);
                    if (System.getenv("LOGWORK_TRACE") != null) cause.printStackTrace();
                }
                for (Host host : work.hosts) host.settle();
            }
            System.out.println(JSON.writeValueAsString(refused));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private void perform() throws Exception {
        Host host = hosts.length == 0 ? null : hosts[step.path("host").asInt()];
        switch (step.get("do").asText()) {
            case "begin" -> begin();
            case "topic" -> topic();
            case "delete" -> delete();
            case "alter" -> alter();
            case "send" -> send();
            case "end" -> end();
            case "epoch" -> epoch++;
            case "time" -> now += step.get("ms").asLong();
            case "replicate" -> replicate(partition(), step.get("bytes").asInt());
            case "switch" -> change();
            case "trim" -> leading().maybeIncrementLogStartOffset(
                Math.min(step.get("offset").asLong(), leading().highWatermark()), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "roll" -> host.log(partition()).roll();
            case "flush" -> host.log(partition()).flush(false);
            case "expire" -> host.log(partition()).removeExpiredProducers(now);
            case "clean" -> clean(host);
            case "task" -> host.tasks.periodic.get(step.get("name").asText()).run();
            case "late" -> Tasks.run(host.tasks.late);
            case "future" -> future(host);
            case "restart" -> restart(host);
            case "stop" -> stop(host);
            case "close" -> {
                for (Host one : hosts) one.kill();
                hosts = new Host[] {};
            }
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private interface Action {
        void on(Host host) throws Exception;
    }

    private void eachHost(Action action) throws Exception {
        for (Host host : hosts) action.on(host);
    }

    private void begin() throws Exception {
        roots = step.get("roots");
        expirationMs = step.get("expirationMs").asInt();
        dedupe = step.get("dedupe").asLong();
        hosts = new Host[roots.size()];
        for (int i = 0; i < hosts.length; i++) {
            for (JsonNode root : roots.get(i)) {
                File directory = new File(root.asText());
                Files.createDirectories(directory.toPath());
                Files.writeString(new File(directory, "meta.properties").toPath(), "version=1\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\n"
                    + "node.id=" + (i + 1) + "\ndirectory.id=" + Uuid.randomUuid() + "\n");
            }
            hosts[i] = new Host();
            hosts[i].start(roots.get(i));
        }
    }

    private TopicPartition partition() {
        return new TopicPartition(step.get("topic").asText(), step.get("partition").asInt());
    }

    private UnifiedLog leading() {
        return hosts[leader].log(partition());
    }

    private void topic() throws Exception {
        Map<String, String> config = new HashMap<>();
        step.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().asText()));
        String name = step.get("topic").asText();
        topics.put(name, config);
        ids.put(name, Uuid.randomUuid());
        for (Host host : hosts) {
            for (int i = 0; i < step.get("partitions").asInt(); i++) {
                UnifiedLog log = host.manager.logMadeIfMissing(new TopicPartition(name, i), true, false, ids.get(name));
                log.assignEpochStartOffset(epoch, log.logEndOffset());
            }
        }
    }

    /** As a broker that is told to stop replicas: of a log dir that they move to, too. */
    private void delete() throws Exception {
        eachHost(host -> {
            for (boolean isFuture : new boolean[] {false, true}) {
                if (host.manager.log(partition(), isFuture) == null) continue;
                host.manager.asyncDelete(partition(), isFuture, true, step.path("isStray").asBoolean());
            }
        });
        producers.values().forEach(one -> {
            one.open.remove(partition());
            one.sequences.remove(partition());
        });
    }

    private void alter() throws Exception {
        String name = step.get("topic").asText();
        topics.put(name, new HashMap<>(topics.get(name)));
        step.get("config").fields().forEachRemaining(one -> topics.get(name).put(one.getKey(), one.getValue().asText()));
        Properties config = new Properties();
        config.putAll(topics.get(name));
        eachHost(host -> host.manager.updateTopicConfig(name, config, false, false));
    }

    private void appended(TopicPartition partition, MemoryRecords records, AppendOrigin origin, int version) throws Exception {
        UnifiedLog log = hosts[leader].log(partition);
        log.appendAsLeader(records, epoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) version);
        if (hosts.length == 1) log.maybeIncrementHighWatermark(log.logEndOffsetMetadata());
    }

    private void send() throws Exception {
        SimpleRecord[] records = new SimpleRecord[step.get("records").asInt()];
        for (int i = 0; i < records.length; i++) {
            byte[] value = step.get("isTombstone").asBoolean() && i % 2 == 0 ? null : new byte[step.get("size").asInt()];
            byte[] key = ("key" + (step.get("key").asInt() + i) % 20).getBytes(StandardCharsets.UTF_8);
            records[i] = new SimpleRecord(now + step.get("late").asLong() + i, key, value);
        }
        Compression codec = Compression.of(step.get("codec").asText()).build();
        if (step.get("producer").asLong() < 0) {
            appended(partition(), MemoryRecords.withRecords(codec, records), AppendOrigin.CLIENT, -1);
            return;
        }
        Producer producer = producers.computeIfAbsent(step.get("producer").asLong(), Producer::new);
        int sequence = producer.sequences.getOrDefault(partition(), 0);
        boolean isTransactional = step.get("version").asInt() >= 0;
        try {
            appended(partition(), isTransactional
                ? MemoryRecords.withTransactionalRecords(codec, producer.id, producer.epoch, sequence, records)
                : MemoryRecords.withIdempotentRecords(codec, producer.id, producer.epoch, sequence, records),
                AppendOrigin.CLIENT, -1);
        } catch (RuntimeException refused) {
            if (!isTransactional) {
                producer.epoch++;
                producer.sequences.clear();
            }
            throw refused;
        }
        producer.sequences.put(partition(), sequence + records.length);
        if (isTransactional) producer.open.put(partition(), true);
    }

    /** Markers of a transaction, in all its partitions; with version 2, or of a fenced producer, of the next epoch. */
    private void end() throws Exception {
        Producer producer = producers.get(step.get("producer").asLong());
        if (producer == null || producer.open.isEmpty()) return;
        int version = step.get("version").asInt();
        if (version == 2 || step.get("isFenced").asBoolean()) {
            producer.epoch++;
            producer.sequences.clear();
        }
        if (step.get("isFailover").asBoolean()) coordinatorEpoch++;
        ControlRecordType type = step.get("isCommit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        for (TopicPartition partition : List.copyOf(producer.open.keySet())) {
            int count = step.get("isTwice").asBoolean() && version < 2 ? 2 : 1;
            for (int i = 0; i < count; i++) {
                appended(partition, MemoryRecords.withEndTransactionMarker(
                    now, producer.id, producer.epoch, new EndTransactionMarker(type, coordinatorEpoch)), AppendOrigin.COORDINATOR, version);
            }
            producer.open.remove(partition);
        }
    }

    /** What a follower fetches once, and what the leader learns by that. */
    private void replicate(TopicPartition partition, int bytes) throws Exception {
        if (hosts.length == 1) return;
        UnifiedLog from = hosts[leader].log(partition);
        UnifiedLog to = hosts[1 - leader].log(partition);
        if (to.logEndOffset() < from.logStartOffset()) {
            hosts[1 - leader].manager.truncateFullyAndStartAt(partition, from.logStartOffset(), false, Optional.empty());
        }
        MemoryRecords records = readable(from, to.logEndOffset(), bytes);
        if (records.sizeInBytes() > 0) to.appendAsFollower(records, epoch);
        from.maybeIncrementHighWatermark(new org.apache.kafka.storage.internals.log.LogOffsetMetadata(
            Math.min(to.logEndOffset(), from.logEndOffset())));
        to.maybeUpdateHighWatermark(Math.min(from.highWatermark(), to.logEndOffset()));
        to.maybeIncrementLogStartOffset(from.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
    }

    private static MemoryRecords readable(UnifiedLog from, long offset, int bytes) throws Exception {
        var read = from.read(offset, bytes, FetchIsolation.LOG_END, true).records;
        ByteBuffer buffer = ByteBuffer.allocate(read.sizeInBytes());
        if (read instanceof org.apache.kafka.common.record.internal.FileRecords file) {
            file.readInto(buffer, 0);
            return MemoryRecords.readableRecords(buffer);
        }
        return (MemoryRecords) read;
    }

    /**
     * The follower, which has all that was acknowledged, leads from now on; what the old leader got since is cut off there
     * (`AbstractFetcherThread`), and sent again where a producer counts.
     */
    private void change() throws Exception {
        if (hosts.length == 1) return;
        for (UnifiedLog log : hosts[leader].manager.all()) {
            UnifiedLog other = hosts[1 - leader].log(log.topicPartition());
            while (!log.isFuture() && other != null && other.logEndOffset() < log.logEndOffset()) replicate(log.topicPartition(), 100_000);
            for (int i = 0; i < step.get("lost").asInt() && !log.isFuture(); i++) {
                appended(log.topicPartition(), MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(now, new byte[3], new byte[30])),
                    AppendOrigin.CLIENT, -1);
            }
        }
        epoch++;
        leader = 1 - leader;
        for (UnifiedLog log : hosts[leader].manager.all()) {
            UnifiedLog other = hosts[1 - leader].log(log.topicPartition());
            if (other == null || log.isFuture()) continue;
            log.assignEpochStartOffset(epoch, log.logEndOffset());
            long target = other.logEndOffset();
            if (other.latestEpoch().isPresent()) {
                OffsetAndEpoch theirs = log.endOffsetForEpoch(other.latestEpoch().get()).orElse(new OffsetAndEpoch(log.logStartOffset(), -1));
                target = Math.min(target, theirs.offset());
                if (theirs.epoch() != other.latestEpoch().get() && theirs.epoch() >= 0) {
                    target = Math.min(target, other.endOffsetForEpoch(theirs.epoch()).map(OffsetAndEpoch::offset).orElse(target));
                }
            }
            hosts[1 - leader].manager.truncate(log.topicPartition(), target);
        }
    }

    private void clean(Host host) throws Exception {
        Method method = LogCleaner.CleanerThread.class.getDeclaredMethod("tryCleanFilthiestLog");
        method.setAccessible(true);
        method.invoke(host.cleaner);
    }

    /** The partition moves to another log dir: some bytes more of it, and all in the end. */
    private void future(Host host) throws Exception {
        if (roots.get(step.get("host").asInt()).size() < 2 || host.log(partition()) == null) return;
        UnifiedLog current = host.log(partition());
        UnifiedLog future = host.manager.log(partition(), true);
        if (future == null) {
            for (JsonNode root : roots.get(step.get("host").asInt())) {
                if (!new File(root.asText()).getAbsolutePath().equals(current.parentDir())) {
                    host.manager.maybeUpdatePreferredLogDir(partition(), new File(root.asText()).getAbsolutePath());
                }
            }
            host.manager.logMadeIfMissing(partition(), false, true, ids.get(partition().topic()));
            return;
        }
        if (future.logEndOffset() < current.logStartOffset()) {
            host.manager.truncateFullyAndStartAt(partition(), current.logStartOffset(), true, Optional.empty());
        }
        MemoryRecords records = readable(current, future.logEndOffset(), 400);
        if (records.sizeInBytes() > 0) future.appendAsFollower(records, epoch);
        future.maybeUpdateHighWatermark(Math.min(current.highWatermark(), future.logEndOffset()));
        future.maybeIncrementLogStartOffset(current.logStartOffset(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
        if (future.logEndOffset() == current.logEndOffset()) {
            host.manager.abortAndPauseCleaning(partition());
            host.manager.replaceCurrentWithFutureLog(partition());
        }
    }

    private void stop(Host host) throws Exception {
        host.manager.shutdown(-1);
    }

    private void restart(Host host) throws Exception {
        if (step.get("isClean").asBoolean()) stop(host);
        else host.kill();
        int number = step.get("host").asInt();
        hosts[number] = new Host();
        hosts[number].start(roots.get(number));
        for (UnifiedLog log : hosts[number].manager.all()) log.updateHighWatermark(log.logEndOffset());
    }
}
