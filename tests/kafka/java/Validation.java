import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.errors.RecordBatchTooLargeException;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;

/**
 * Single appends of whatever bytes to an empty UnifiedLog. One question a line on stdin, one answer a line on stdout:
 *
 *   {"config": {name: value}, "now": ms, "end": log end offset, "origin": name, "epoch": leader epoch, "data": hex}
 *   {"first": n, "last": n, "max": ms, "time": ms, "valid": bytes, "codec": name, "data": hex of what was written}
 *   {"error": "class: message", "records": [[batch index, message]]}
 *   {"later": "class: message"} if it was refused behind the checks that are tried here
 */
public class Validation {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Set<String> LATER = Set.of("assignEpochStartOffset", "maybeRoll", "analyzeAndValidateProducerState");
    static long now;

    public static void main(String[] args) throws Exception {
        Configurator.setRootLevel(Level.ERROR);  // what Kafka thinks of such bytes, and of files that it empties so often
        Path place = Files.createTempDirectory("validation");
        KafkaScheduler scheduler = new KafkaScheduler(1, true, "validation-");
        scheduler.startup();
        File directory = Files.createDirectories(place.resolve("t-0")).toFile();
        UnifiedLog log = UnifiedLog.create(directory, config(JSON.createObjectNode()), 0L, 0L, scheduler,
            new BrokerTopicStats(false), clock(), 900000, new ProducerStateManagerConfig(86400000, false), 600000,
            new LogDirFailureChannel(1), true, Optional.empty());
        Lines.answer(question -> answer(log, question));
        System.out.flush();
        try (var files = Files.walk(place)) {
            files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
        Runtime.getRuntime().halt(0);
    }

    static Time clock() {
        return (Time) Proxy.newProxyInstance(Validation.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, args) -> method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, args));
    }

    static LogConfig config(JsonNode values) {
        Properties properties = new Properties();
        properties.put("file.delete.delay.ms", "0");
        properties.put("segment.index.bytes", "65536");
        properties.put("retention.ms", "-1");
        values.fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        return new LogConfig(properties);
    }

    static ObjectNode answer(UnifiedLog log, JsonNode question) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        now = question.get("now").asLong();
        log.truncateFullyAndStartAt(question.get("end").asLong(), Optional.empty());
        log.updateConfig(config(question.get("config")));
        try {
            LogAppendInfo info = append(log, question);
            answer.put("first", info.firstOffset()).put("last", info.lastOffset()).put("max", info.maxTimestamp());
            answer.put("time", info.logAppendTime()).put("valid", info.validBytes());
            answer.put("codec", info.sourceCompression().name).put("epoch", info.lastLeaderEpoch().orElse(null));
            FileRecords written = log.activeSegment().log();
            ByteBuffer data = ByteBuffer.allocate(written.sizeInBytes());
            written.readInto(data, 0);
            answer.put("data", HexFormat.of().formatHex(data.array(), 0, data.limit()));
        } catch (RecordValidationException refused) {
            answer.put("error", refused.invalidException().toString());
            ArrayNode records = answer.putArray("records");
            for (ProduceResponse.RecordError error : refused.recordErrors()) {
                records.addArray().add(error.batchIndex).add(error.message);
            }
        } catch (RuntimeException refused) {
            boolean isLater = Arrays.stream(refused.getStackTrace()).anyMatch(frame -> LATER.contains(frame.getMethodName()))
                || log.latestEpoch().isPresent() && !(refused instanceof RecordBatchTooLargeException);
            answer.put(isLater ? "later" : "error", refused.toString());
        }
        return answer;
    }

    static LogAppendInfo append(UnifiedLog log, JsonNode question) {
        byte[] data = HexFormat.of().parseHex(question.get("data").asText());
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
        AppendOrigin origin = AppendOrigin.valueOf(question.get("origin").asText());
        int epoch = question.get("epoch").asInt();
        if (origin == AppendOrigin.REPLICATION) {
            return log.appendAsFollower(records, epoch);
        }
        return log.appendAsLeader(records, epoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
    }
}
