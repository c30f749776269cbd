import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Times the real log in process. One order a line on stdin, one answer a line on stdout; the process stays warm:
 *
 *   {"op": "append", "dir": path, "records": per batch, "count": appends, "valueSize": n}
 *                                                                 a new log in dir; batches are made inside the time
 *   {"op": "open", "dirs": [path], "clean": bool, "config": {…}}  opens (recovers) all of them; then closes them, not timed
 *   {"op": "read", "file": path}                                  every batch checked, every record iterated
 *   {"op": "clean", "dir": path, "slots": n, "config": {…}}       cleans all but the active segment
 *   and those of RecordBench, HeldLog and HeldClients
 *   → {"ns": time, "count": n, "bytes": n}
 */
public class LogBench {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final BrokerTopicStats STATISTICS = new BrokerTopicStats(false); // one of a broker
    private static KafkaScheduler scheduler; // of the logs that were opened last

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode order = JSON.readTree(line);
            ObjectNode answer = switch (order.get("op").asText()) {
                case "append" -> append(order);
                case "open" -> reopen(order);
                case "read" -> read(order);
                case "clean" -> clean(order);
                case "crc" -> RecordBench.crc(order);
                case "encode" -> RecordBench.encode(order);
                case "searchOffsets" -> RecordBench.search(order, false);
                case "searchTimes" -> RecordBench.search(order, true);
                case "hold" -> HeldLog.hold(order);
                case "mark" -> HeldLog.mark(order);
                case "snapshot" -> HeldLog.snapshot(order);
                case "fetch" -> HeldLog.fetch(order);
                case "times" -> HeldLog.times(order);
                case "release" -> HeldLog.release();
                case "transact" -> HeldClients.transact(order);
                case "chain" -> HeldClients.chain(order);
                default -> throw new IllegalArgumentException(line);
            };
            System.out.println(JSON.writeValueAsString(answer));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static ObjectNode append(JsonNode order) throws Exception {
        File directory = new File(order.get("dir").asText(), "t-0");
        Files.createDirectories(directory.toPath());
        UnifiedLog log = open(directory, order, true);
        int recordCount = order.get("records").asInt();
        SimpleRecord[] records = records(recordCount, order.get("valueSize").asInt(), System.currentTimeMillis());
        int count = order.get("count").asInt();
        RequestLocal requestLocal = RequestLocal.withThreadConfinedCaching();
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            MemoryRecords batch = MemoryRecords.withIdempotentRecords(Compression.NONE, 7L, (short) 0, i * recordCount, records);
            log.appendAsLeader(batch, 0, AppendOrigin.CLIENT, requestLocal, VerificationGuard.SENTINEL, (short) 2);
            log.updateHighWatermark(log.logEndOffsetMetadata());
        }
        long ns = System.nanoTime() - start;
        ObjectNode answer = JSON.createObjectNode().put("ns", ns).put("count", log.logEndOffset()).put("bytes", log.size());
        log.close();
        return answer;
    }

    static SimpleRecord[] records(int count, int valueSize, long now) {
        SimpleRecord[] records = new SimpleRecord[count];
        for (int i = 0; i < count; i++) {
            byte[] value = new byte[valueSize];
            for (int j = 0; j < valueSize; j++) value[j] = (byte) ('a' + (i * 31 + j * 7) % 26);
            records[i] = new SimpleRecord(now, null, value);
        }
        return records;
    }

    static ObjectNode reopen(JsonNode order) throws Exception {
        boolean isClean = order.get("clean").asBoolean();
        LogConfig config = startFor(order); // a broker has its threads, its metrics and its configuration before it loads logs
        List<File> directories = new ArrayList<>();
        for (JsonNode each : order.get("dirs")) directories.add(new File(each.asText()));
        List<UnifiedLog> logs = new ArrayList<>();
        long start = System.nanoTime();
        for (File directory : directories) logs.add(create(directory, config, isClean));
        long openedNs = System.nanoTime() - start;
        long count = 0;
        long bytes = 0;
        for (UnifiedLog log : logs) {
            count += log.logEndOffset();
            bytes += log.size();
        }
        for (UnifiedLog log : logs) log.close();
        scheduler.shutdown(); // a checkpoint that is written later would meet the next log of this directory
        return RecordBench.answer(openedNs, count, bytes);
    }

    static ObjectNode read(JsonNode order) throws Exception {
        long count = 0;
        long bytes = 0;
        long start = System.nanoTime();
        try (FileRecords records = FileRecords.open(new File(order.get("file").asText()), false);
             BufferSupplier buffers = BufferSupplier.create()) {
            for (FileLogInputStream.FileChannelRecordBatch batch : records.batches()) {
                batch.ensureValid();
                try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                    while (iterator.hasNext()) {
                        Record record = iterator.next();
                        count++;
                        bytes += record.valueSize() + record.offset() % 2;
                    }
                }
            }
        }
        return JSON.createObjectNode().put("ns", System.nanoTime() - start).put("count", count).put("bytes", bytes);
    }

    static ObjectNode clean(JsonNode order) throws Exception {
        UnifiedLog log = open(new File(order.get("dir").asText()), order, true);
        log.updateHighWatermark(log.logEndOffset());
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(order.get("slots").asInt() * 24 + 1024), 512 * 1024, 10 * 1024 * 1024, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "throttler", "entries", Time.SYSTEM), Time.SYSTEM, topicPartition -> { });
        long start = System.nanoTime(); // the map is made before: a broker's cleaner keeps its own
        long end = cleaner.clean(new LogToClean(log, log.logStartOffset(), log.activeSegment().baseOffset(), false)).getKey();
        long ns = System.nanoTime() - start;
        ObjectNode answer = JSON.createObjectNode().put("ns", ns).put("count", end).put("bytes", log.size());
        log.close();
        scheduler.shutdown(); // what it would delete in a minute is of the next copy then
        return answer;
    }

    static UnifiedLog open(File directory, JsonNode order, boolean isClean) throws Exception {
        return create(directory, startFor(order), isClean);
    }

    /** What logs share that are opened next; returns their configuration. */
    static LogConfig startFor(JsonNode order) {
        Properties config = new Properties();
        if (order.has("config")) order.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        scheduler = new KafkaScheduler(1, true, "bench-");
        scheduler.startup();
        return new LogConfig(config);
    }

    static UnifiedLog create(File directory, LogConfig config, boolean isClean) throws Exception {
        return UnifiedLog.create(directory, config, 0L, 0L, scheduler, STATISTICS, Time.SYSTEM, 900000,
            new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), isClean, Optional.empty());
    }
}
