import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.file.Files;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

/**
 * Orders of LogBench that need no log:
 *
 *   {"op": "crc", "file": path, "count": n}                       of all its bytes, from memory; answers the checksum
 *   {"op": "encode", "records": per batch, "count": batches, "valueSize": n, "compression": name}
 *   {"op": "searchOffsets" or "searchTimes", "file": index, "first": n, "span": n, "count": n}
 *                                                                 answers the sum of what is found
 */
class RecordBench {
    static final long STEP = 2654435761L; // of the targets, so that one is far from the next

    static ObjectNode crc(JsonNode order) throws Exception {
        byte[] data = Files.readAllBytes(new File(order.get("file").asText()).toPath());
        int count = order.get("count").asInt();
        long crc = 0;
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) crc = Crc32C.compute(data, 0, data.length);
        return answer(System.nanoTime() - start, crc, (long) data.length * count);
    }

    static ObjectNode encode(JsonNode order) {
        SimpleRecord[] records = LogBench.records(order.get("records").asInt(), order.get("valueSize").asInt(),
            System.currentTimeMillis());
        Compression compression = Compression.of(order.path("compression").asText("none")).build();
        int count = order.get("count").asInt();
        long bytes = 0;
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) bytes += MemoryRecords.withRecords(compression, records).sizeInBytes();
        return answer(System.nanoTime() - start, (long) records.length * count, bytes);
    }

    static ObjectNode search(JsonNode order, boolean isTime) throws Exception {
        File file = new File(order.get("file").asText());
        long first = order.get("first").asLong();
        long span = order.get("span").asLong();
        int count = order.get("count").asInt();
        int size = (int) file.length();
        long sum = 0;
        long ns;
        try (TimeIndex times = isTime ? new TimeIndex(file, 0, size, false) : null;
             OffsetIndex offsets = isTime ? null : new OffsetIndex(file, 0, size, false)) {
            long start = System.nanoTime();
            for (int i = 0; i < count; i++) {
                long target = first + i * STEP % span;
                sum += isTime ? times.lookup(target).offset() : offsets.lookup(target).position();
            }
            ns = System.nanoTime() - start;
        }
        return answer(ns, sum, size);
    }

    static ObjectNode answer(long ns, long count, long bytes) {
        return LogBench.JSON.createObjectNode().put("ns", ns).put("count", count).put("bytes", bytes);
    }
}
