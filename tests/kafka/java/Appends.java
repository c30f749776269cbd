import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Appends batches to a fresh UnifiedLog as a leader would. One workload a line on stdin, one answer a line on stdout:
 *
 *   {"interval": bytes, "verify": bool, "steps": [{"origin": name, "version": n, "begin": null|false|true, "batch": hex}]}
 *   {"answers": [{"first": n, "last": n, "time": n, "unstable": n|null} | {"error": "class: message", "unstable": …}],
 *    "files": {suffix: hex}}
 *
 * "begin" starts a verification first (true: of a producer with transaction version 2) and shows its guard. After every
 * third step the high watermark follows the log's end. The files are those of the closed log.
 */
public class Appends {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int MARKER_FLAG = 0x20;

    public static void main(String[] args) throws Exception {
        Lines.answer(workload -> {
            Path place = Files.createTempDirectory("appends");
            ObjectNode answer = run(workload, place.resolve("t-0").toFile());
            try (var files = Files.walk(place)) {
                files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
            return answer;
        });
        Runtime.getRuntime().halt(0);
    }

    static ObjectNode run(JsonNode workload, File directory) throws Exception {
        Files.createDirectories(directory.toPath());
        Properties config = new Properties();
        config.put("index.interval.bytes", workload.get("interval").asText());
        config.put("segment.index.bytes", "65536");
        config.put("retention.ms", "-1");
        KafkaScheduler scheduler = new KafkaScheduler(1, true, "appends-");
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(directory, new LogConfig(config), 0L, 0L, scheduler, new BrokerTopicStats(false),
            Time.SYSTEM, 900000, new ProducerStateManagerConfig(86400000, workload.get("verify").asBoolean()), 600000,
            new LogDirFailureChannel(1), true, Optional.empty());
        ObjectNode result = JSON.createObjectNode();
        ArrayNode answers = result.putArray("answers");
        for (JsonNode step : workload.get("steps")) {
            ObjectNode answer = answers.addObject();
            try {
                LogAppendInfo info = append(log, step);
                answer.put("first", info.firstOffset()).put("last", info.lastOffset()).put("time", info.logAppendTime());
            } catch (RuntimeException refused) {
                answer.put("error", refused.toString());
            }
            log.updateHighWatermark(log.logEndOffset());
            answer.put("unstable", log.firstUnstableOffset().orElse(null));
        }
        Moved.close(log);
        scheduler.shutdown();
        ObjectNode files = result.putObject("files");
        for (File file : directory.listFiles()) {
            String suffix = file.getName().replaceFirst("^[0-9]*\\.", "");
            files.put(suffix, HexFormat.of().formatHex(Files.readAllBytes(file.toPath())));
        }
        return result;
    }

    static LogAppendInfo append(UnifiedLog log, JsonNode step) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(step.get("batch").asText())));
        RecordBatch batch = records.batches().iterator().next();
        VerificationGuard guard = VerificationGuard.SENTINEL;
        if (!step.get("begin").isNull()) {
            guard = log.maybeStartTransactionVerification(
                batch.producerId(), batch.baseSequence(), batch.producerEpoch(), step.get("begin").asBoolean());
        }
        AppendOrigin origin = AppendOrigin.valueOf(step.get("origin").asText());
        short version = (short) step.get("version").asInt();
        return log.appendAsLeader(records, 0, origin, RequestLocal.noCaching(), guard, version);
    }
}
