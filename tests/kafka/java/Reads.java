import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.internals.Consuming;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Reads partition directories through UnifiedLog. One directory a line on stdin, one answer a line on stdout:
 *
 *   {…as of LogCheck, "highWatermark": n|null, "reads": [[offset, maxSize, isolation, minOneMessage], …], "times": [ms, …],
 *    "consumers": [[offset, maxSize, isolation], …]}
 *   {"bounds": [logStart, logEnd, highWatermark, lastStable], "times": [[ms, offset, epoch|null] | null | {"error"}, …],
 *    "reads": [{"start", "size", "crc", "incomplete", "aborted"} | {"error": "class: message"}, …],
 *    "consumers": [{"records": [[offset, ms, type, key, value, [[name, value], …], epoch|null], …], "position": n, "error"}]}
 *   {"error": "class: message"}    the directory does not load
 *
 * The high watermark is the log's end unless it is given; bounds are as Kafka has them after all reads.
 */
public class Reads {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Lines.answer(question -> {
            System.gc();  // lets go of the files of the log before
            try {
                return answer(question);
            } catch (Throwable thrown) {
                return JSON.createObjectNode().put("error", thrown.toString());
            }
        });
        Runtime.getRuntime().halt(0);
    }

    static ObjectNode answer(JsonNode question) throws Exception {
        File directory = new File(question.get("directory").asText()).getAbsoluteFile();
        UnifiedLog log = LogCheck.open(directory, question, new LogCheck.Later());
        JsonNode highWatermark = question.get("highWatermark");
        log.updateHighWatermark(highWatermark.isNull() ? log.logEndOffset() : highWatermark.asLong());
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode reads = answer.putArray("reads");
        for (JsonNode read : question.get("reads")) reads.add(read(log, read));
        ArrayNode times = answer.putArray("times");
        for (JsonNode time : question.get("times")) times.add(time(log, time.asLong()));
        ArrayNode consumers = answer.putArray("consumers");
        for (JsonNode consumer : question.get("consumers")) consumers.add(consume(log, consumer));
        answer.putArray("bounds").add(log.logStartOffset()).add(log.logEndOffset()).add(log.highWatermark())
            .add(log.lastStableOffset());
        Moved.close(log);
        return answer;
    }

    static JsonNode read(UnifiedLog log, JsonNode read) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            FetchDataInfo fetched = log.read(read.get(0).asLong(), read.get(1).asInt(),
                FetchIsolation.valueOf(read.get(2).asText()), read.get(3).asBoolean());
            LogOffsetMetadata start = fetched.fetchOffsetMetadata;
            answer.putArray("start").add(start.messageOffset).add(start.segmentBaseOffset)
                .add(start.relativePositionInSegment);
            answer.put("size", fetched.records.sizeInBytes());
            answer.put("crc", crc(fetched.records));
            answer.put("incomplete", fetched.firstEntryIncomplete);
            answer.putNull("aborted");
            fetched.abortedTransactions.ifPresent(aborted -> {
                ArrayNode list = answer.putArray("aborted");
                aborted.forEach(txn -> list.addArray().add(txn.producerId()).add(txn.firstOffset()));
            });
        } catch (Throwable thrown) {
            answer.removeAll();
            answer.put("error", thrown.toString());
        }
        return answer;
    }

    /** Fetches from an offset on until there is nothing more, as a consumer does; the data of each fetch in memory. */
    static ObjectNode consume(UnifiedLog log, JsonNode question) throws Exception {
        FetchIsolation isolation = FetchIsolation.valueOf(question.get(2).asText());
        Consuming consumer = new Consuming(log.topicPartition(), isolation == FetchIsolation.TXN_COMMITTED
            ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED, question.get(0).asLong());
        ObjectNode answer = JSON.createObjectNode();
        answer.putNull("error");
        try {
            while (true) {
                long position = consumer.position();
                FetchDataInfo fetched = log.read(position, question.get(1).asInt(), isolation, true);
                consumer.take(MemoryRecords.readableRecords(bytes(fetched.records)), fetched.abortedTransactions);
                if (consumer.position() == position) break;
            }
        } catch (Exception thrown) {
            boolean isWrapped = String.valueOf(thrown.getMessage()).startsWith("Received exception when fetching");
            answer.put("error", (isWrapped ? thrown.getCause() : thrown).toString());
        }
        answer.put("position", consumer.position());
        ArrayNode records = answer.putArray("records");
        for (ConsumerRecord<byte[], byte[]> record : consumer.records()) {
            ArrayNode described = records.addArray().add(record.offset()).add(record.timestamp())
                .add(record.timestampType().id).add(hex(record.key())).add(hex(record.value()));
            ArrayNode headers = described.addArray();
            for (Header header : record.headers()) headers.addArray().add(header.key()).add(hex(header.value()));
            described.add(record.leaderEpoch().orElse(null));
        }
        return answer;
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : HexFormat.of().formatHex(bytes);
    }

    static long crc(Records records) throws Exception {
        CRC32C crc = new CRC32C();
        crc.update(bytes(records));
        return crc.getValue();
    }

    static ByteBuffer bytes(Records records) throws Exception {
        if (records instanceof MemoryRecords memory) return memory.buffer();
        ByteBuffer bytes = ByteBuffer.allocate(records.sizeInBytes());
        ((FileRecords) records).readInto(bytes, 0);
        return bytes;
    }

    static JsonNode time(UnifiedLog log, long timestamp) {
        try {
            OffsetResultHolder holder = log.fetchOffsetByTimestamp(timestamp, Optional.empty());
            if (holder.timestampAndOffsetOpt().isEmpty()) return JSON.nullNode();
            FileRecords.TimestampAndOffset found = holder.timestampAndOffsetOpt().get();
            ArrayNode answer = JSON.createArrayNode().add(found.timestamp).add(found.offset);
            return found.leaderEpoch.isPresent() ? answer.add(found.leaderEpoch.get()) : answer.addNull();
        } catch (Throwable thrown) {
            return JSON.createObjectNode().put("error", thrown.toString());
        }
    }
}
