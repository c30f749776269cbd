import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.AbstractRecords;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter.BatchRetention;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter.BatchRetentionResult;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/**
 * Builds batches as producers, coordinators and the cleaner do. One question a line on stdin, one answer on stdout:
 * {"hex": …} or {"counts": […]} or {"records": […]} or {"error": "class: message"}. A record is
 * {"key": hex|null, "value": hex|null, "time": n, "offset": n, "headers": [[text, hex|null]]}.
 */
public class Builds {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int ROOM = 1 << 20;

    public static void main(String[] args) throws Exception {
        Lines.answer(question -> {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(question, answer);
            } catch (RuntimeException refused) {
                answer.removeAll();
                answer.put("error", refused.toString());
            }
            return answer;
        });
    }

    static void answer(JsonNode asked, ObjectNode answer) {
        switch (asked.get("ask").asText()) {
            case "build" -> answer.put("hex", hex(build(asked)));
            case "split" -> split(asked, answer.putArray("counts"));
            case "marker" -> answer.put("hex", hex(marker(asked)));
            case "empty" -> answer.put("hex", hex(empty(batchOf(asked))));
            case "filter" -> answer.put("hex", hex(filter(asked)));
            case "read" -> read(asked, answer.putArray("records"));
            default -> throw new IllegalStateException(asked.toString());
        }
    }

    static ByteBuffer build(JsonNode asked) {
        boolean isControl = asked.get("control").asBoolean();
        ByteBufferOutputStream out = new ByteBufferOutputStream(ROOM);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(out, (byte) 2, compression(asked),
            TimestampType.forName(asked.get("type").asText()), asked.get("base").asLong(), asked.get("appendTime").asLong(),
            asked.get("producer").asLong(), (short) asked.get("epoch").asInt(), asked.get("sequence").asInt(),
            asked.get("transactional").asBoolean(), isControl, asked.get("leaderEpoch").asInt(), ROOM,
            asked.get("horizon").asLong());
        for (JsonNode record : asked.get("records")) {
            SimpleRecord simple = new SimpleRecord(record.get("time").asLong(), bytes(record.get("key")),
                bytes(record.get("value")), headers(record));
            if (isControl) {
                builder.appendControlRecordWithOffset(record.get("offset").asLong(), simple);
            } else {
                builder.appendWithOffset(record.get("offset").asLong(), simple);
            }
        }
        if (asked.hasNonNull("last")) {
            builder.overrideLastOffset(asked.get("last").asLong());
        }
        return builder.build().buffer();
    }

    /** A producer's batches: a buffer as `RecordAccumulator` takes it, filled as `ProducerBatch` does. */
    static void split(JsonNode asked, ArrayNode counts) {
        MemoryRecordsBuilder builder = null;
        for (JsonNode record : asked.get("records")) {
            long time = record.get("time").asLong();
            byte[] key = bytes(record.get("key"));
            byte[] value = bytes(record.get("value"));
            Header[] headers = headers(record);
            if (builder == null || !builder.hasRoomFor(time, key, value, headers)) {
                if (builder != null) {
                    counts.add(builder.numRecords());
                }
                int size = Math.max(asked.get("size").asInt(), AbstractRecords.estimateSizeInBytesUpperBound(
                    (byte) 2, CompressionType.NONE, key, value, headers));
                builder = MemoryRecords.builder(ByteBuffer.allocate(size), Compression.NONE, TimestampType.CREATE_TIME, 0L);
            }
            builder.append(time, key, value, headers);
        }
        if (builder != null) {
            counts.add(builder.numRecords());
        }
    }

    static ByteBuffer marker(JsonNode asked) {
        EndTransactionMarker marker = new EndTransactionMarker(
            ControlRecordType.valueOf(asked.get("control").asText()), asked.get("coordinatorEpoch").asInt());
        return MemoryRecords.withEndTransactionMarker(asked.get("base").asLong(), asked.get("time").asLong(),
            asked.get("leaderEpoch").asInt(), asked.get("producer").asLong(), (short) asked.get("epoch").asInt(), marker)
            .buffer();
    }

    static ByteBuffer empty(RecordBatch batch) {
        ByteBuffer out = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(out, (byte) 2, batch.producerId(), batch.producerEpoch(), batch.baseSequence(),
            batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(), batch.timestampType(),
            batch.maxTimestamp(), batch.isTransactional(), batch.isControlBatch());
        out.flip();
        return out;
    }

    /** The cleaner's rewrite of one batch, with the records kept that `keep` says; a horizon that is set is `horizon`. */
    static ByteBuffer filter(JsonNode asked) {
        JsonNode keep = asked.get("keep");
        long horizon = asked.get("horizon").asLong();
        int[] index = {0};
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(horizon, 0L) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, asked.get("isHorizonSet").asBoolean());
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return keep.get(index[0]++).asBoolean();
            }
        };
        ByteBuffer batch = ByteBuffer.wrap(bytes(asked.get("batch")));
        return Moved.filtered(MemoryRecords.readableRecords(batch), filter, ByteBuffer.allocate(ROOM)).flip();
    }

    static void read(JsonNode asked, ArrayNode records) {
        RecordBatch batch = batchOf(asked);
        batch.ensureValid();
        for (Record record : batch) {
            ObjectNode read = records.addObject();
            read.put("key", hex(record.key())).put("value", hex(record.value()));
            read.put("time", record.timestamp()).put("offset", record.offset());
            ArrayNode headers = read.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : hex(ByteBuffer.wrap(header.value())));
            }
        }
    }

    static RecordBatch batchOf(JsonNode asked) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(asked.get("batch")))).batches().iterator().next();
    }

    static Compression compression(JsonNode asked) {
        CompressionType type = CompressionType.forName(asked.get("codec").asText());
        if (!asked.hasNonNull("level")) {
            return Compression.of(type).build();
        }
        int level = asked.get("level").asInt();
        return switch (type) {
            case GZIP -> Compression.gzip().level(level).build();
            case LZ4 -> Compression.lz4().level(level).build();
            case ZSTD -> Compression.zstd().level(level).build();
            default -> throw new UnsupportedOperationException("" + type.defaultLevel());
        };
    }

    static Header[] headers(JsonNode record) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        return headers.toArray(new Header[0]);
    }

    static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HexFormat.of().parseHex(hex.asText());
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] content = new byte[buffer.remaining()];
        buffer.duplicate().get(content);
        return HexFormat.of().formatHex(content);
    }
}
