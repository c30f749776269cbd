import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** GoldenTransactions BOOTSTRAP [demo]: transactions that commit, abort, interleave, are fenced, and one left open. */
public final class GoldenTransactions {
    private final Clients clients;
    private final Admin admin;

    private GoldenTransactions(String bootstrap) {
        clients = new Clients(bootstrap);
        admin = clients.admin();
    }

    public static void main(String[] args) throws Exception {
        GoldenTransactions golden = new GoldenTransactions(args[0]);
        boolean demo = args.length > 1 && args[1].equals("demo");
        Clients.createTopic(golden.admin, "orders", demo ? 1 : 2);
        Clients.createTopic(golden.admin, "payments", 1, "index.interval.bytes=100");
        golden.interleaved();
        golden.offsets();
        if (!demo) {
            golden.manySegments();
            golden.fenced();
            golden.abortedByAdmin();
            golden.empty();
        }
        golden.leftOpen();
        Clients.vanish();
    }

    private void interleaved() throws Exception {
        try (var billing = clients.transactionalProducer("billing-1", "compression.type=zstd");
                var shipping = clients.transactionalProducer("shipping-1");
                var plain = clients.plainProducer("compression.type=gzip");
                var idempotent = clients.producer("compression.type=snappy")) {
            for (int round = 0; round < 4; round++) {
                billing.beginTransaction();
                shipping.beginTransaction();
                send(billing, "orders", 0, round + "-a", round + "-b");
                send(shipping, "orders", 0, round + "-c");
                send(plain, "orders", 0, round + "-outside");
                send(billing, "payments", 0, round + "-d", round + "-e", round + "-f");
                send(idempotent, "payments", 0, round + "-numbered");
                send(shipping, "payments", 0, round + "-g");
                if (round % 2 == 0) billing.abortTransaction();
                else billing.commitTransaction();
                send(shipping, "orders", 0, round + "-h");
                if (round == 3) shipping.abortTransaction();
                else shipping.commitTransaction();
            }
        }
    }

    private void offsets() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(
            new TopicPartition("orders", 0), new OffsetAndMetadata(3, "read so far"),
            new TopicPartition("payments", 0), new OffsetAndMetadata(5, Optional.of(0), ""));
        try (var copying = clients.transactionalProducer("kopierer-ü", "compression.type=lz4")) {
            for (boolean commit : new boolean[] {true, false, true}) {
                copying.beginTransaction();
                copying.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata("copiers", -1, "", Optional.empty()));
                send(copying, "orders", 0, "copied");
                if (commit) copying.commitTransaction();
                else copying.abortTransaction();
            }
        }
    }

    private void manySegments() throws Exception {
        Clients.createTopic(admin, "rolled", 1, "internal.segment.bytes=1000", "index.interval.bytes=200");
        try (var one = clients.transactionalProducer("roll-1"); var two = clients.transactionalProducer("roll-2")) {
            one.beginTransaction();
            send(one, "rolled", 0, "stays open over segments");
            for (int round = 0; round < 24; round++) {
                two.beginTransaction();
                send(two, "rolled", 0, "r" + round, "s" + round);
                if (round % 3 == 0) two.abortTransaction();
                else two.commitTransaction();
                if (round == 15) {
                    one.abortTransaction();
                    one.beginTransaction();
                    send(one, "rolled", 0, "and again");
                }
            }
            one.commitTransaction();
        }
    }

    private void fenced() throws Exception {
        KafkaProducer<byte[], byte[]> first = clients.transactionalProducer("single");
        first.beginTransaction();
        send(first, "orders", 1, "before the fence");
        try (var second = clients.transactionalProducer("single")) {
            second.beginTransaction();
            send(second, "orders", 1, "after the fence");
            second.commitTransaction();
        }
        Clients.mustFail("a fenced producer", () -> {
            send(first, "orders", 1, "too late");
            return null;
        });
    }

    /** A hanging transaction, ended by the administrator and not by its coordinator. */
    private void abortedByAdmin() throws Exception {
        TopicPartition partition = new TopicPartition("orders", 1);
        KafkaProducer<byte[], byte[]> hanging = clients.transactionalProducer("hanging");
        hanging.beginTransaction();
        send(hanging, "orders", 1, "nobody ends this");
        var states = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
        for (var state : states) {
            if (state.currentTransactionStartOffset().isEmpty()) continue;
            admin.abortTransaction(new AbortTransactionSpec(
                partition, state.producerId(), (short) state.producerEpoch(), 0)).all().get();
        }
    }

    private void empty() {
        try (var idle = clients.transactionalProducer("idle")) {
            idle.beginTransaction();
            idle.commitTransaction();
            idle.beginTransaction();
            idle.abortTransaction();
        }
    }

    private void leftOpen() throws Exception {
        KafkaProducer<byte[], byte[]> open = clients.transactionalProducer("left-open", "compression.type=lz4");
        open.beginTransaction();
        send(open, "orders", 0, "still", "open");
        send(open, "payments", 0, "open as well");
        try (var later = clients.transactionalProducer("billing-1")) {
            later.beginTransaction();
            send(later, "orders", 0, "after the open one");
            later.abortTransaction();
            later.beginTransaction();
            send(later, "payments", 0, "paid");
            later.commitTransaction();
        }
    }

    @SuppressWarnings("unchecked")
    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, int partition, String... values)
            throws Exception {
        var records = new org.apache.kafka.clients.producer.ProducerRecord[values.length];
        for (int i = 0; i < values.length; i++) records[i] = Clients.record(topic, partition, topic + i, values[i]);
        Clients.sendBatch(producer, records);
    }
}
