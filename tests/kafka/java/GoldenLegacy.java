import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.LegacyRecord;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/** GoldenLegacy DIRECTORY: message sets of magic 0 and 1, as brokers before 0.11 wrote them, and broken ones. */
public final class GoldenLegacy {
    private static final CompressionType[] CODECS = {
        CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4,
    };
    private static final byte[] KEY = Clients.bytes("key");
    private static final byte[] VALUE = Clients.bytes("a value, a value, a value");

    private final Path directory;

    private GoldenLegacy(Path directory) {
        this.directory = directory;
    }

    public static void main(String[] args) throws Exception {
        GoldenLegacy golden = new GoldenLegacy(Path.of(args[0]));
        for (byte magic = 0; magic <= 1; magic++)
            for (CompressionType codec : CODECS) golden.good(magic, codec, TimestampType.CREATE_TIME);
        for (CompressionType codec : CODECS) golden.good((byte) 1, codec, TimestampType.LOG_APPEND_TIME);
        golden.mixedMagic();
        golden.gaps();
        golden.brokenWrappers();
        golden.brokenRecords();
    }

    private void good(byte magic, CompressionType codec, TimestampType time) throws IOException {
        LogFile log = new LogFile();
        addBatch(log, magic, codec, time, 1);
        addBatch(log, magic, codec, time, 5);
        MemoryRecordsBuilder odd = builder(log, magic, codec, time);
        byte[][] values = {null, {}, {(byte) 0xff, 0}, Clients.bytes("ü\n"), new byte[70_000]};
        for (byte[] value : values) odd.append(magic == 0 ? -1 : LogFile.SOME_TIME + lengthOf(value), value, value);
        log.add(odd.build(), values.length);
        addBatch(log, magic, codec, time, 20);
        String suffix = time == TimestampType.LOG_APPEND_TIME ? "-append-time" : "";
        log.writeIndexed(directory.resolve("v" + magic + "-" + codec.name + suffix + "-0"));
    }

    private void mixedMagic() throws IOException {
        LogFile log = new LogFile();
        for (byte magic = 0; magic <= 2; magic++)
            for (CompressionType codec : CODECS) addBatch(log, magic, codec, TimestampType.CREATE_TIME, 3);
        for (byte magic = 2; magic >= 0; magic--)
            addBatch(log, magic, CompressionType.GZIP, TimestampType.CREATE_TIME, 2);
        log.write(LogFile.segment(directory, "mixed-0"));
    }

    /** What compaction left of wrappers: inner records with holes between them. */
    private void gaps() throws IOException {
        for (byte magic = 0; magic <= 1; magic++) {
            LogFile log = new LogFile();
            for (CompressionType codec : CODECS) {
                MemoryRecordsBuilder builder = builder(log, magic, codec, TimestampType.CREATE_TIME);
                for (int step : new int[] {1, 4, 5, 9})
                    builder.appendWithOffset(log.nextOffset() + step, magic == 0 ? -1 : LogFile.SOME_TIME + step, KEY, VALUE);
                log.add(builder.build(), 12);
            }
            log.write(LogFile.segment(directory, "gaps-v" + magic + "-0"));
        }
    }

    private void brokenWrappers() throws IOException {
        for (byte magic = 0; magic <= 1; magic++) {
            byte[] inner = entry(0, record(magic, CompressionType.NONE, KEY, VALUE));
            byte[] two = join(inner, entry(1, record(magic, CompressionType.NONE, KEY, VALUE)));
            byte other = (byte) (1 - magic);
            byte[][] insides = {
                {}, inner, two, join(two, new byte[] {0, 0, 0}), join(inner, entry(7, record(magic, CompressionType.NONE, null, null))),
                entry(0, record(other, CompressionType.NONE, KEY, VALUE)), entry(0, wrapper(magic, CompressionType.GZIP, inner)),
                damaged(two, 14, 0x55), damaged(two, 8, 0x7f), damaged(two, 11, 0x03), damaged(two, two.length - 40, 0xff),
                damaged(inner, 16, 0x02), entry(-5, record(magic, CompressionType.NONE, KEY, VALUE)),
                join(inner, new byte[40]), new byte[40],
            };
            for (int i = 0; i < insides.length; i++) {
                LogFile log = new LogFile();
                log.add(ByteBuffer.wrap(entry(10, wrapper(magic, CODECS[1 + i % 3], insides[i]))), 11);
                log.write(LogFile.segment(directory, "broken-wrapper-v" + magic + "-" + i));
            }
        }
    }

    private void brokenRecords() throws IOException {
        for (byte magic = 0; magic <= 1; magic++) {
            byte[] good = entry(0, record(magic, CompressionType.NONE, KEY, VALUE));
            int keySizeAt = 12 + (magic == 0 ? 6 : 14);
            byte[][] broken = {
                damaged(good, 12, 0xff), damaged(good, 17, 0x01), damaged(good, 17, 0x05), damaged(good, 17, 0x08),
                damaged(good, 17, 0xf0), damaged(good, 17, 0x04), damaged(good, keySizeAt, 0x7f),
                damaged(good, keySizeAt, 0x80), damaged(good, keySizeAt + 3, 0x10), damaged(good, keySizeAt + 7, 0x7f),
                damaged(good, 11, 0x01), damaged(good, 10, 0x01), damaged(good, 8, 0xff), damaged(good, 0, 0x80),
                entry(0, wrapper(magic, CompressionType.ZSTD, good)), entry(0, wrapper(magic, CompressionType.GZIP, null)),
            };
            for (int i = 0; i < broken.length; i++) {
                byte[] content = join(join(entry(0, record(magic, CompressionType.NONE, null, VALUE)), broken[i]), good);
                LogFile.write(LogFile.segment(directory, "broken-record-v" + magic + "-" + i), content);
            }
        }
    }

    private static void addBatch(LogFile log, byte magic, CompressionType codec, TimestampType time, int count) {
        MemoryRecordsBuilder builder = builder(log, magic, codec, time);
        for (int i = 0; i < count; i++) {
            long timestamp = magic == 0 ? -1 : LogFile.SOME_TIME + 10 * log.nextOffset() + (i * 7) % 5;
            builder.append(timestamp, i % 3 == 0 ? null : KEY, i % 4 == 3 ? null : VALUE);
        }
        log.add(builder.build(), count);
    }

    private static MemoryRecordsBuilder builder(LogFile log, byte magic, CompressionType codec, TimestampType time) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 18), magic, Compression.of(codec).build(), time,
            log.nextOffset(), time == TimestampType.LOG_APPEND_TIME ? LogFile.SOME_TIME + 99 : -1L);
    }

    private static int lengthOf(byte[] value) {
        return value == null ? 0 : value.length;
    }

    private static byte[] record(byte magic, CompressionType codec, byte[] key, byte[] value) {
        ByteBuffer buffer = LegacyRecord.create(
            magic, magic == 0 ? -1 : LogFile.SOME_TIME, key, value, codec, TimestampType.CREATE_TIME).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static byte[] wrapper(byte magic, CompressionType codec, byte[] inside) throws IOException {
        if (inside == null) return record(magic, codec, null, null);
        if (codec == CompressionType.ZSTD) return record(magic, codec, null, inside);
        ByteBufferOutputStream compressed = new ByteBufferOutputStream(1 << 16);
        try (OutputStream stream = Compression.of(codec).build().wrapForOutput(compressed, magic)) {
            stream.write(inside);
        }
        byte[] value = new byte[compressed.position()];
        compressed.buffer().duplicate().flip().get(value);
        return record(magic, codec, null, value);
    }

    /** Offset and size before a record. */
    private static byte[] entry(long offset, byte[] record) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(offset);
        out.writeInt(record.length);
        out.write(record);
        return bytes.toByteArray();
    }

    private static byte[] damaged(byte[] good, int position, int flip) {
        byte[] bytes = good.clone();
        bytes[position] ^= (byte) flip;
        return bytes;
    }

    private static byte[] join(byte[] head, byte[] tail) {
        return ByteBuffer.allocate(head.length + tail.length).put(head).put(tail).array();
    }
}
