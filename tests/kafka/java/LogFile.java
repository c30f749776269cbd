import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;

/** Bytes of a log made by hand from Kafka's own record classes, batch after batch, then written to a file. */
final class LogFile {
    static final long SOME_TIME = 1_700_000_000_000L;
    static final int LEADER_EPOCH = 3;

    private static final int CRC_AT = 17;
    private static final int ATTRIBUTES_AT = 21;
    private static final byte CONTROL_FLAG = 0x20;

    private final ByteBuffer bytes = ByteBuffer.allocate(4 << 20);
    private long nextOffset = 0;

    long nextOffset() {
        return nextOffset;
    }

    void add(ByteBuffer batch, int recordCount) {
        bytes.put(batch.duplicate());
        nextOffset += recordCount;
    }

    void add(MemoryRecords records, int recordCount) {
        add(records.buffer(), recordCount);
    }

    /** A plain v2 batch. */
    void add(SimpleRecord... records) {
        add(MemoryRecords.withRecords(nextOffset, Compression.NONE, LEADER_EPOCH, records), records.length);
    }

    MemoryRecordsBuilder control() {
        return new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
            TimestampType.CREATE_TIME, nextOffset, SOME_TIME, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
            RecordBatch.NO_SEQUENCE, false, true, LEADER_EPOCH, 1 << 16);
    }

    /** A control batch of any keys and values, right or wrong: Kafka's builder would refuse unknown types. */
    void addControl(SimpleRecord... records) {
        ByteBuffer batch = MemoryRecords.withRecords(nextOffset, Compression.NONE, LEADER_EPOCH, records).buffer();
        batch.put(ATTRIBUTES_AT + 1, (byte) (batch.get(ATTRIBUTES_AT + 1) | CONTROL_FLAG));
        batch.putInt(CRC_AT, (int) Crc32C.compute(batch, ATTRIBUTES_AT, batch.limit() - ATTRIBUTES_AT));
        add(batch, records.length);
    }

    byte[] toBytes() {
        byte[] all = new byte[bytes.position()];
        bytes.duplicate().flip().get(all);
        return all;
    }

    void write(Path file) throws IOException {
        write(file, toBytes());
    }

    static void write(Path file, byte[] content) throws IOException {
        Files.createDirectories(file.getParent());
        Files.write(file, content);
    }

    static Path segment(Path directory, String partition) {
        return directory.resolve(partition).resolve("00000000000000000000.log");
    }

    /** Writes the batches through Kafka's LogSegment, which makes the two indexes beside the log. */
    void writeIndexed(Path partition) throws IOException {
        Files.createDirectories(partition);
        LogConfig config = new LogConfig(Map.of("index.interval.bytes", "100", "segment.index.bytes", "4096"));
        try (LogSegment segment = LogSegment.open(partition.toFile(), 0, config, Time.SYSTEM, 0, false)) {
            for (var batch : MemoryRecords.readableRecords(ByteBuffer.wrap(toBytes())).batches()) {
                ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
                batch.writeTo(one);
                segment.append(batch.lastOffset(), MemoryRecords.readableRecords(one.flip()));
            }
            segment.onBecomeInactiveSegment();
        }
    }
}
