import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescription;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescription;
import org.apache.kafka.coordinator.group.api.streams.StreamsTopologyDescriptionPermanentFailureException;
import org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin;

/**
 * GoldenNewest BOOTSTRAP: what came with 4.4: topic ids in commits of transactions, descriptions of streams groups, a dead
 * letter queue, a range of addresses in an ACL, a controller that is unregistered (2, which was there), configurations.
 */
public final class GoldenNewest {
    private static final String REFUSED = "refused";

    private final Clients clients;
    private final Admin admin;

    private GoldenNewest(String bootstrap) {
        clients = new Clients(bootstrap);
        admin = clients.admin();
    }

    /** The plugin of the broker: keeps what it is told, but refuses what is told of one group. */
    public static final class Descriptions extends InMemoryTopologyDescriptionPlugin {
        @Override
        public CompletableFuture<Void> setTopology(String group, int epoch, StreamsGroupTopologyDescription description) {
            if (!group.equals(REFUSED)) return super.setTopology(group, epoch, description);
            return CompletableFuture.failedFuture(new StreamsTopologyDescriptionPermanentFailureException("not this one"));
        }
    }

    public static void main(String[] args) throws Exception {
        GoldenNewest golden = new GoldenNewest(args[0]);
        golden.topics();
        golden.commits();
        golden.deadLetters();
        golden.described("described");
        golden.described(REFUSED);
        golden.cluster();
        Clients.vanish();
    }

    private void topics() throws Exception {
        Clients.createTopic(admin, "in", 1, "max.decompressed.message.bytes=1000000", "remote.copy.lag.ms=60000");
        Clients.createTopic(admin, "dlq.in", 1, "errors.deadletterqueue.group.enable=true");
        try (var producer = clients.producer("compression.type=zstd")) {
            for (int i = 0; i < 6; i++) Clients.sendBatch(producer, Clients.record("in", 0, "k" + i, "v" + i));
        }
    }

    private void commits() throws Exception {
        try (var producer = clients.transactionalProducer("mover")) {
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                Clients.sendBatch(producer, Clients.record("in", 0, "t", "moved " + i));
                producer.sendOffsetsToTransaction(Map.of(new TopicPartition("in", 0), new OffsetAndMetadata(i)),
                    new ConsumerGroupMetadata("moved", -1, "", Optional.empty()));
                if (i == 1) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
    }

    private void deadLetters() throws Exception {
        set("shared", "share.auto.offset.reset", "earliest");
        set("shared", "errors.deadletterqueue.topic.name", "dlq.in");
        set("shared", "errors.deadletterqueue.copy.record.enable", "true");
        Map<String, Object> config = Map.of("bootstrap.servers", clients.bootstrap, "group.id", "shared",
            "share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("in"));
            TopicPartition letters = new TopicPartition("dlq.in", 0);
            Clients.waitUntil("rejected records are in the queue", () -> {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    consumer.acknowledge(record, record.offset() % 2 == 0 ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT);
                }
                consumer.commitSync();
                return admin.listOffsets(Map.of(letters, OffsetSpec.latest())).partitionResult(letters).get().offset() >= 3;
            });
        }
    }

    private void set(String group, String name, String value) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group),
            List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)))).all().get();
    }

    private void described(String group) throws Exception {
        var topology = Clients.counting(group, "in");
        topology.setWireTopologyDescription(new TopologyDescription());
        boolean[] wasAsked = {false};
        int[] polls = {0};
        clients.joinStreams(group, "in", topology, () -> {
            wasAsked[0] |= topology.topologyPushRequired();
            return (wasAsked[0] && !topology.topologyPushRequired() && ++polls[0] > 10) || ++polls[0] > 300;
        });
        if (!wasAsked[0]) throw new IllegalStateException("nobody asked for the description of " + group);
    }

    private void cluster() throws Exception {
        admin.createAcls(List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "in", PatternType.LITERAL),
            new AccessControlEntry("User:alice", "10.1.0.0/16", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
        admin.unregisterController(2).all().get();
    }
}
