import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * BrokerWork BOOTSTRAP: does what tests/silence/broker_steps.py draws, one JSON object a line, with clients that live on.
 *
 * stdout: for each line "done", or why not; a client that fails is left, and made anew when it is next asked for.
 */
public final class BrokerWork {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long PATIENCE_MS = 3_000;

    private final Clients clients;
    private final String bootstrap;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private JsonNode step;

    private BrokerWork(String bootstrap) {
        this.bootstrap = bootstrap;
        clients = new Clients(bootstrap);
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", "3000",
            "request.timeout.ms", "2000", "reconnect.backoff.max.ms", "200"));
    }

    public static void main(String[] args) throws Exception {
        BrokerWork work = new BrokerWork(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            work.step = JSON.readTree(line);
            try {
                work.perform();
                System.out.println("done");
            } catch (Exception refused) {
                work.producers.remove(work.step.path("producer").asText());
                System.out.println(String.valueOf(refused.getCause() == null ? refused : refused.getCause()).replace('\n', ' '));
            }
            System.out.flush();
        }
        Clients.vanish();
    }

    private void perform() throws Exception {
        switch (text("do")) {
            case "create" -> done(admin.createTopics(List.of(
                new NewTopic(text("topic"), Optional.of(number("partitions")), Optional.of((short) number("replicas")))
                    .configs(settings()))).all());
            case "delete" -> done(admin.deleteTopics(List.of(text("topic"))).all());
            case "grow" -> done(admin.createPartitions(Map.of(text("topic"), NewPartitions.increaseTo(number("partitions")))).all());
            case "alter" -> done(admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.valueOf(text("type")), text("topic")),
                settings().entrySet().stream().map(one -> new AlterConfigOp(
                    new ConfigEntry(one.getKey(), one.getValue()), AlterConfigOp.OpType.SET)).toList())).all());
            case "send" -> send();
            case "begin" -> producer().beginTransaction();
            case "commit" -> producer().commitTransaction();
            case "abort" -> producer().abortTransaction();
            case "vanish" -> producers.remove(text("producer"));
            case "offsets" -> producer().sendOffsetsToTransaction(processed(), new ConsumerGroupMetadata(text("group")));
            case "poll" -> poll();
            case "leave" -> consumers.remove(text("group")).close();
            case "share" -> share();
            case "streams" -> streams();
            case "reset" -> done(admin.alterConsumerGroupOffsets(text("group"), Map.of(partition(), new OffsetAndMetadata(0))).all());
            case "forget" -> done(admin.deleteConsumerGroups(List.of(text("group"))).all());
            case "forget-offsets" -> done(admin.deleteConsumerGroupOffsets(text("group"), Set.of(partition())).all());
            case "trim" -> done(admin.deleteRecords(Map.of(partition(), RecordsToDelete.beforeOffset(number("offset")))).all());
            case "move" -> done(admin.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica(text("topic"), number("partition"), 1), text("directory"))).all());
            case "abort-hanging" -> abortHanging();
            case "elsewhere" -> elsewhere();
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private String text(String name) {
        return step.get(name).asText();
    }

    private int number(String name) {
        return step.get(name).asInt();
    }

    private Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>();
        step.path("config").fields().forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        return settings;
    }

    private TopicPartition partition() {
        return new TopicPartition(text("topic"), number("partition"));
    }

    /** Of a group that goes on from what it has committed, and not beyond the end; a topic made again ends earlier. */
    private Map<TopicPartition, OffsetAndMetadata> processed() throws Exception {
        long end = done(admin.listOffsets(Map.of(partition(), OffsetSpec.latest())).all()).get(partition()).offset();
        OffsetAndMetadata before = done(admin.listConsumerGroupOffsets(text("group")).partitionsToOffsetAndMetadata()).get(partition());
        long offset = Math.min((before == null ? 0 : before.offset()) + number("offset"), end);
        return Map.of(partition(), new OffsetAndMetadata(offset, Optional.of(0), "so far"));
    }

    private static <T> T done(KafkaFuture<T> future) throws Exception {
        return future.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }

    private KafkaProducer<byte[], byte[]> producer() {
        return producers.computeIfAbsent(text("producer"), name -> {
            List<String> settings = new ArrayList<>(List.of("max.block.ms=2500", "request.timeout.ms=2000", "linger.ms=0",
                "delivery.timeout.ms=2500", "reconnect.backoff.max.ms=200", "compression.type=" + text("codec")));
            if (name.startsWith("plain")) settings.addAll(List.of("enable.idempotence=false", "acks=1"));
            if (name.startsWith("tx")) settings.addAll(List.of("transactional.id=" + name, "transaction.timeout.ms=" + text("timeout")));
            KafkaProducer<byte[], byte[]> producer = clients.producer(settings.toArray(String[]::new));
            if (name.startsWith("tx")) producer.initTransactions();
            return producer;
        });
    }

    private void send() throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (int i = 0; i < number("records"); i++) {
            byte[] value = step.get("isTombstone").asBoolean() && i % 2 == 0 ? null : new byte[number("size")];
            sent.add(producer().send(new ProducerRecord<>(
                text("topic"), number("partition"), Clients.bytes("key" + (number("key") + i) % 20), value)));
        }
        producer().flush();
        for (Future<?> one : sent) one.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }

    private void poll() throws Exception {
        String protocol = text("protocol");
        KafkaConsumer<byte[], byte[]> consumer = consumers.computeIfAbsent(text("group"), group -> {
            KafkaConsumer<byte[], byte[]> made = clients.consumer(group, "group.protocol=" + protocol,
                "default.api.timeout.ms=2500", "request.timeout.ms=2000", "reconnect.backoff.max.ms=200");
            made.subscribe(List.of(text("topic")));
            return made;
        });
        for (int i = 0; i < 4; i++) consumer.poll(Duration.ofMillis(100));
        consumer.commitSync();
    }

    private void share() throws Exception {
        done(admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, text("group")),
            List.of(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all());
        try (var consumer = new KafkaShareConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", text("group")),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(text("topic")));
            for (int i = 0; i < 8; i++) consumer.poll(Duration.ofMillis(100));
        }
    }

    private void streams() throws Exception {
        String group = text("group"), topic = text("topic");
        int[] polls = {0};
        clients.joinStreams(group, topic, Clients.counting(group, topic), () -> ++polls[0] == 8);
    }

    /** What `kafka-transactions.sh abort` does, for transactions of producers that are gone. */
    private void abortHanging() throws Exception {
        var states = done(admin.describeProducers(List.of(partition())).partitionResult(partition())).activeProducers();
        for (var state : states) {
            if (state.currentTransactionStartOffset().isEmpty()) continue;
            done(admin.abortTransaction(new AbortTransactionSpec(partition(), state.producerId(),
                (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all());
        }
    }

    /** What an administrator changes that lies in the metadata log alone. */
    private void elsewhere() throws Exception {
        switch (text("what")) {
            case "acl" -> done(admin.createAcls(List.of(new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, text("topic"), PatternType.PREFIXED),
                new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all());
            case "scram" -> done(admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("alice",
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), Clients.bytes("secret")))).all());
            case "quota" -> done(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                new ClientQuotaEntity(Map.of("user", "alice")),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all());
            case "version" -> done(admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate(
                (short) number("level"), FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all());
            default -> throw new IllegalArgumentException(step.toString());
        }
    }
}
