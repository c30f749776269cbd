import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** GoldenGroups BOOTSTRAP: classic groups, consumer groups (KIP-848), share groups (KIP-932), and their offsets. */
public final class GoldenGroups {
    private static final Duration SHORTLY = Duration.ofMillis(200);
    private static final TopicPartition IN_0 = new TopicPartition("in", 0);
    private static final TopicPartition IN_1 = new TopicPartition("in", 1);

    private final Clients clients;
    private final String bootstrap;
    private final Admin admin;

    private GoldenGroups(String bootstrap) {
        this.bootstrap = bootstrap;
        clients = new Clients(bootstrap);
        admin = clients.admin();
    }

    public static void main(String[] args) throws Exception {
        GoldenGroups golden = new GoldenGroups(args[0]);
        golden.fill();
        golden.standalone();
        golden.classic("range", "org.apache.kafka.clients.consumer.RangeAssignor");
        golden.classic("sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        golden.consumerProtocol();
        golden.transactional();
        golden.share();
        golden.deleted();
        golden.membersLeftInside();
        Clients.vanish();
    }

    private void fill() throws Exception {
        Clients.createTopic(admin, "in", 2);
        Clients.createTopic(admin, "in-too", 1);
        try (var producer = clients.plainProducer()) {
            for (int i = 0; i < 10; i++) {
                Clients.sendBatch(producer, Clients.record("in", i % 2, "k" + i, "v" + i));
                Clients.sendBatch(producer, Clients.record("in-too", 0, "k" + i, "v" + i));
            }
        }
    }

    private void standalone() {
        try (var consumer = clients.consumer("standalone-ü")) {
            consumer.assign(List.of(IN_0, IN_1));
            consumer.commitSync(Map.of(IN_0, new OffsetAndMetadata(1)));
            consumer.commitSync(Map.of(IN_0, new OffsetAndMetadata(2, "note \"2\"\n"),
                IN_1, new OffsetAndMetadata(3, Optional.of(0), "with epoch")));
        }
    }

    private void classic(String groupId, String assignor) throws Exception {
        String strategy = "partition.assignment.strategy=" + assignor;
        try (var one = clients.consumer(groupId, strategy, "client.id=one", "client.rack=r1");
                var two = clients.consumer(groupId, strategy, "client.id=zwei-ü", "group.instance.id=static-2")) {
            one.subscribe(List.of("in", "in-too"));
            pollUntilAssigned(one);
            two.subscribe(List.of("in"));
            pollUntilAssigned(one, two);
            one.commitSync();
            two.commitSync();
        }
    }

    private void consumerProtocol() throws Exception {
        try (var one = clients.consumer("new-protocol", "group.protocol=consumer", "client.rack=r1");
                var two = clients.consumer("new-protocol", "group.protocol=consumer", "group.instance.id=static-2",
                    "group.remote.assignor=range");
                var regex = clients.consumer("new-by-pattern", "group.protocol=consumer")) {
            one.subscribe(List.of("in"));
            two.subscribe(List.of("in", "in-too"));
            regex.subscribe(new SubscriptionPattern("in.*"));
            pollUntilAssigned(one, two, regex);
            one.commitSync();
            two.commitSync(Map.of(new TopicPartition("in-too", 0), new OffsetAndMetadata(4, "by hand")));
            regex.commitSync();
        }
    }

    private void transactional() throws Exception {
        try (var producer = clients.transactionalProducer("mover")) {
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(
                    Map.of(IN_0, new OffsetAndMetadata(i)), new ConsumerGroupMetadata("moved", -1, "", Optional.empty()));
                if (i == 1) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
    }

    private void share() throws Exception {
        AlterConfigOp earliest = new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.GROUP, "shared"), List.of(earliest))).all().get();
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", "shared",
            "share.acknowledgement.mode", "explicit", "max.poll.records", "4");
        try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("in", "in-too"));
            List<Integer> seen = new ArrayList<>();
            Clients.waitUntil("shared records", () -> {
                for (var record : consumer.poll(SHORTLY)) {
                    AcknowledgeType[] answers = {
                        AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT};
                    consumer.acknowledge(record, answers[seen.size() % answers.length]);
                    seen.add(record.partition());
                }
                consumer.commitSync();
                return seen.size() > 25;
            });
        }
    }

    private void deleted() throws Exception {
        for (String groupId : List.of("forgotten", "half-forgotten"))
            admin.alterConsumerGroupOffsets(groupId, Map.of(IN_0, new OffsetAndMetadata(7),
                IN_1, new OffsetAndMetadata(8))).all().get();
        admin.deleteConsumerGroups(List.of("forgotten")).all().get();
        admin.deleteConsumerGroupOffsets("half-forgotten", Set.of(IN_0)).all().get();
    }

    private void membersLeftInside() throws Exception {
        KafkaConsumer<byte[], byte[]> classic = clients.consumer("still-there");
        KafkaConsumer<byte[], byte[]> modern = clients.consumer("still-there-too", "group.protocol=consumer");
        classic.subscribe(List.of("in"));
        modern.subscribe(List.of("in"));
        pollUntilAssigned(classic, modern);
        classic.commitSync();
        modern.commitSync();
    }

    @SafeVarargs
    private static void pollUntilAssigned(KafkaConsumer<byte[], byte[]>... consumers) throws Exception {
        Clients.waitUntil("assignment", () -> {
            boolean all = true;
            for (var consumer : consumers) {
                consumer.poll(SHORTLY);
                all &= !consumer.assignment().isEmpty();
            }
            return all;
        });
    }
}
