import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;

/** GoldenCompacted BOOTSTRAP DIRECTORY: topics the cleaner went over once or twice, with every kind of leftover. */
public final class GoldenCompacted {
    private static final List<String> CODECS = List.of("none", "gzip", "lz4");
    private static final int ROUNDS = 12;

    private final Clients clients;
    private final Admin admin;
    private final Path checkpoint;

    private GoldenCompacted(String bootstrap, Path directory) {
        clients = new Clients(bootstrap);
        admin = clients.admin();
        checkpoint = directory.resolve("cleaner-offset-checkpoint");
    }

    public static void main(String[] args) throws Exception {
        GoldenCompacted golden = new GoldenCompacted(args[0], Path.of(args[1]));
        golden.createTopic("tombstones-kept", "delete.retention.ms=86400000");
        golden.createTopic("tombstones-dropped", "delete.retention.ms=1");
        for (String topic : List.of("tombstones-kept", "tombstones-dropped")) {
            golden.overwrite(topic, 0);
            long first = golden.cleaned(topic, 0);
            Thread.sleep(50);
            golden.overwrite(topic, 1);
            golden.cleaned(topic, first);
            golden.fresh(topic);
        }
        Clients.vanish();
    }

    private void createTopic(String name, String setting) throws Exception {
        Clients.createTopic(admin, name, 1, "cleanup.policy=compact", "internal.segment.bytes=1500",
            "min.cleanable.dirty.ratio=0.01", "index.interval.bytes=300", "segment.ms=" + Long.MAX_VALUE, setting);
    }

    private void overwrite(String topic, int generation) throws Exception {
        try (var transactional = clients.transactionalProducer("compactor-" + topic);
                var idempotent = clients.producer();
                var shortLived = clients.producer()) {
            send(shortLived, topic, "k1=soon overwritten", "k2=too");
            for (int round = 0; round < ROUNDS; round++) {
                try (var plain = clients.plainProducer("compression.type=" + CODECS.get(round % CODECS.size()))) {
                    send(plain, topic, "k1=g" + generation + round, "k2=g" + generation + round, "only" + round + "=kept");
                }
                send(idempotent, topic, "k3=i" + generation + round, round % 4 == 3 ? "k1" : "k4=x" + round);
                transactional.beginTransaction();
                send(transactional, topic, "k5=t" + generation + round, "gone" + round);
                if (round % 3 == 1) transactional.abortTransaction();
                else transactional.commitTransaction();
            }
        }
    }

    /** Records after the last cleaning, so that the active segment is not empty. */
    private void fresh(String topic) throws Exception {
        try (var plain = clients.plainProducer()) {
            send(plain, topic, "k1=fresh", "k2", "new=1");
        }
    }

    private long cleaned(String topic, long before) throws Exception {
        Clients.waitUntil("cleaning of " + topic, () -> cleanedOffset(topic) > before);
        Thread.sleep(1500);
        return cleanedOffset(topic);
    }

    private long cleanedOffset(String topic) throws IOException {
        if (!Files.exists(checkpoint)) return -1;
        for (String line : Files.readAllLines(checkpoint)) {
            String[] parts = line.split(" ");
            if (parts.length == 3 && parts[0].equals(topic)) return Long.parseLong(parts[2]);
        }
        return -1;
    }

    /** One batch; "key=value" or, as a tombstone, "key". */
    @SuppressWarnings("unchecked")
    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, String... pairs) throws Exception {
        var records = new org.apache.kafka.clients.producer.ProducerRecord[pairs.length];
        for (int i = 0; i < pairs.length; i++) {
            String[] pair = pairs[i].split("=", 2);
            records[i] = Clients.record(topic, 0, pair[0], pair.length == 2 ? pair[1] : null);
        }
        Clients.sendBatch(producer, records);
    }
}
