import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** GoldenRecords BOOTSTRAP: records of every shape, in every codec, by producers without transactions. */
public final class GoldenRecords {
    private static final long SOME_TIME = 1_700_000_000_000L;
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final int LZ4_BLOCK_BYTES = 64 * 1024;

    private final Clients clients;
    private final Admin admin;
    private final Random random = new Random(431);

    private GoldenRecords(String bootstrap) {
        clients = new Clients(bootstrap);
        admin = clients.admin();
    }

    public static void main(String[] args) throws Exception {
        GoldenRecords golden = new GoldenRecords(args[0]);
        Clients.createTopic(golden.admin, "empty", 1);
        golden.plain();
        golden.keysAndValues();
        golden.headers();
        golden.codecs();
        golden.recompressed();
        golden.timestamps();
        golden.logAppendTime();
        golden.idempotent();
        golden.segments();
        golden.deleted();
        Clients.vanish();
    }

    private void plain() throws Exception {
        Clients.createTopic(admin, "plain", 2);
        try (var producer = clients.plainProducer()) {
            Clients.sendBatch(producer, Clients.record("plain", 0, "key", "value"));
            Clients.sendBatch(producer, numbered("plain", 0, 0, 12));
            Clients.sendBatch(producer, numbered("plain", 1, 0, 3));
            Clients.sendBatch(producer, numbered("plain", 1, 3, 130));
        }
    }

    private void keysAndValues() throws Exception {
        Clients.createTopic(admin, "keys-and-values", 1);
        byte[][] odd = {
            null, {}, {0}, {(byte) 0xff, (byte) 0xfe}, {(byte) 0xc3}, {(byte) 0xe2, (byte) 0x82}, {0, 0, 0, 7},
            {(byte) 0xed, (byte) 0xa0, (byte) 0x80}, {(byte) 0xf0, (byte) 0x9f, (byte) 0x98}, {0, 0, 0, 0, 0, 0, 1, 0},
            {(byte) 0xf8, (byte) 0x88, (byte) 0x80, (byte) 0x80}, {(byte) 0xc0, (byte) 0x80}, {'a', (byte) 0x80, 'b'},
            Clients.bytes("line\nbreak\r\n\ttab"), Clients.bytes("\u0000\u0001\u001b[31m\u007f\u0085\u2028"),
            Clients.bytes("Grüße, 世界, 😀, \ufeff"), Clients.bytes("{\"json\": \"in \\\"quotes\\\"\"}"),
        };
        try (var producer = clients.plainProducer()) {
            for (byte[] key : odd) {
                var batch = new ArrayList<ProducerRecord<byte[], byte[]>>();
                for (byte[] value : odd) batch.add(new ProducerRecord<>("keys-and-values", 0, key, value));
                send(producer, batch);
            }
        }
    }

    private void headers() throws Exception {
        Clients.createTopic(admin, "headers", 1);
        Header[][] rows = {
            {},
            {Clients.header("trace", "7")},
            {Clients.header("", ""), Clients.header("", null)},
            {Clients.header("twice", "1"), Clients.header("twice", "2"), Clients.header("a,b", "[c]")},
            {Clients.header("schlüssel", "wert"), Clients.header("😀", "世界"), Clients.header("line\nbreak\u0000", "x")},
            {Clients.header("long", "x".repeat(300)), Clients.header("k".repeat(200), null)},
        };
        for (String codec : List.of("none", "zstd")) {
            try (var producer = clients.plainProducer("compression.type=" + codec)) {
                var batch = new ArrayList<ProducerRecord<byte[], byte[]>>();
                for (Header[] row : rows) {
                    batch.add(Clients.recordAt("headers", 0, null, "key", Clients.bytes("value"), row));
                    batch.add(Clients.recordAt("headers", 0, null, null, null, row));
                }
                send(producer, batch);
            }
        }
    }

    private void codecs() throws Exception {
        for (String codec : CODECS) {
            String topic = "codec-" + codec;
            Clients.createTopic(admin, topic, 1);
            try (var producer = clients.plainProducer("compression.type=" + codec)) {
                Clients.sendBatch(producer, Clients.record(topic, 0, null, ""));
                Clients.sendBatch(producer, Clients.record(topic, 0, "k", "one small record"));
                Clients.sendBatch(producer, numbered(topic, 0, 0, 50));
                Clients.sendBatch(producer, Clients.record(topic, 0, "big", repetitive(3 * LZ4_BLOCK_BYTES + 17)));
                Clients.sendBatch(producer, Clients.record(topic, 0, "mixed", mixed(LZ4_BLOCK_BYTES)));
                Clients.sendBatch(producer, numbered(topic, 0, 50, 53));
            }
        }
        Clients.createTopic(admin, "incompressible", 1);
        for (String codec : CODECS.subList(1, CODECS.size())) {
            try (var producer = clients.plainProducer("compression.type=" + codec)) {
                Clients.sendBatch(producer, Clients.record("incompressible", 0, codec, noise(12_000)));
            }
        }
    }

    /** The broker compresses anew, at the level the topic asks for. */
    private void recompressed() throws Exception {
        String[][] levels = {
            {"recompressed-gzip", "compression.gzip.level=1"}, {"recompressed-lz4", "compression.lz4.level=12"},
            {"recompressed-zstd", "compression.zstd.level=-5"}, {"recompressed-snappy", "min.insync.replicas=1"},
            {"recompressed-uncompressed", "min.insync.replicas=1"},
        };
        for (String[] level : levels) {
            String type = "compression.type=" + level[0].substring("recompressed-".length());
            Clients.createTopic(admin, level[0], 1, type, level[1]);
            try (var producer = clients.producer("compression.type=zstd")) {
                Clients.sendBatch(producer, numbered(level[0], 0, 0, 20));
            }
        }
    }

    private void timestamps() throws Exception {
        Clients.createTopic(admin, "timestamps", 1, "message.timestamp.after.max.ms=" + Long.MAX_VALUE,
            "segment.ms=" + Long.MAX_VALUE, "retention.ms=-1", "index.interval.bytes=60");
        try (var producer = clients.plainProducer()) {
            long[][] batches = {
                {SOME_TIME}, {SOME_TIME + 5, SOME_TIME + 3, SOME_TIME + 4}, {0, 1, 2}, {SOME_TIME - 1}, {4_102_444_800_000L},
                {1, SOME_TIME * 2, 3}, {SOME_TIME + 7, SOME_TIME + 7}, {Long.MAX_VALUE / 4}, {SOME_TIME + 8},
            };
            for (long[] times : batches) {
                var batch = new ArrayList<ProducerRecord<byte[], byte[]>>();
                for (long time : times) batch.add(Clients.recordAt("timestamps", 0, time, "k", Clients.bytes("v")));
                send(producer, batch);
            }
        }
    }

    private void logAppendTime() throws Exception {
        Clients.createTopic(admin, "log-append-time", 1, "message.timestamp.type=LogAppendTime");
        for (String codec : CODECS) {
            try (var producer = clients.plainProducer("compression.type=" + codec)) {
                var batch = new ArrayList<ProducerRecord<byte[], byte[]>>();
                for (int i = 0; i < 3; i++)
                    batch.add(Clients.recordAt("log-append-time", 0, SOME_TIME + i, codec, Clients.bytes("v" + i)));
                send(producer, batch);
            }
        }
    }

    private void idempotent() throws Exception {
        Clients.createTopic(admin, "idempotent", 2, "index.interval.bytes=200");
        try (var one = clients.producer(); var two = clients.producer("compression.type=lz4")) {
            for (int round = 0; round < 8; round++) {
                Clients.sendBatch(one, numbered("idempotent", 0, round, round + 1 + round % 3));
                Clients.sendBatch(two, numbered("idempotent", round % 2, round, round + 2));
            }
        }
    }

    private void segments() throws Exception {
        Clients.createTopic(admin, "segments", 1, "internal.segment.bytes=1200", "index.interval.bytes=150");
        try (var one = clients.producer(); var two = clients.plainProducer("compression.type=gzip")) {
            for (int round = 0; round < 40; round++) {
                Clients.sendBatch(round % 3 == 2 ? two : one, numbered("segments", 0, round * 3, round * 3 + 3));
            }
        }
    }

    /** DeleteRecords moves the log start offset into the middle of a segment. */
    private void deleted() throws Exception {
        Clients.createTopic(admin, "deleted", 1, "internal.segment.bytes=600", "file.delete.delay.ms=1");
        try (var producer = clients.producer()) {
            for (int round = 0; round < 20; round++) {
                Clients.sendBatch(producer, numbered("deleted", 0, round * 2, round * 2 + 2));
            }
        }
        admin.deleteRecords(Map.of(new TopicPartition("deleted", 0), RecordsToDelete.beforeOffset(17))).all().get();
    }

    @SuppressWarnings("unchecked")
    private static ProducerRecord<byte[], byte[]>[] numbered(String topic, int partition, int from, int to) {
        ProducerRecord<byte[], byte[]>[] records = new ProducerRecord[to - from];
        for (int i = from; i < to; i++)
            records[i - from] = Clients.record(topic, partition, "key-" + i, "value number " + i + " of " + topic);
        return records;
    }

    @SuppressWarnings("unchecked")
    private static void send(KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> batch)
            throws Exception {
        Clients.sendBatch(producer, batch.toArray(new ProducerRecord[0]));
    }

    private static String repetitive(int length) {
        return "abcdefghijklmnopqrstuvwxyz0123456789 \n".repeat(length / 38 + 1).substring(0, length);
    }

    /** Text that compresses well here and badly there, longer than one block of any codec. */
    private String mixed(int blockLength) {
        StringBuilder text = new StringBuilder();
        String noise = noise(3_000);
        while (text.length() < 2 * blockLength) {
            text.append(noise).append(random.nextInt()).append(repetitive(random.nextInt(5_000)));
        }
        return text.toString();
    }

    private String noise(int length) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) text.append((char) (' ' + random.nextInt(95)));
        return text.toString();
    }
}
