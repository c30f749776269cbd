import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Works with a broker that took a data directory over, and tells what its clients see.
 *
 *   TakeOver HOST:PORT work      topics, plain records, transactions committed, aborted and left open, group offsets
 *   TakeOver HOST:PORT state     one line of JSON
 *   TakeOver HOST:PORT tier      topic "tiered", until its first segments are in remote storage alone; {"local": offset}
 *   TakeOver HOST:PORT upgrade   each feature to the highest level that the broker has
 *   TakeOver HOST:PORT cluster   {"features": name to level, "users": …, "topics": …}
 *   TakeOver HOST:PORT join      a member for group "members", and how long it waited for its partitions
 *   TakeOver HOST:PORT refusals  members of a share and a KIP-848 group, and what a commit of nobody is told; they stay
 *   TakeOver HOST:PORT finish    a new producer takes the id of the open transaction; a fresh producer writes
 *
 * Several of them are done one after the other. What "finish" prints: {"transaction": state of the id before, "aborted": whether readers get on, "producerIds": […]}
 */
public class TakeOver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String OPEN_ID = "left-open";

    public static void main(String[] args) throws Exception {
        Clients clients = new Clients(args[0]);
        for (String what : List.of(args).subList(1, args.length)) {
            switch (what) {
                case "work" -> work(clients);
                case "state" -> System.out.println(JSON.writeValueAsString(state(clients)));
                case "upgrade" -> upgrade(clients);
                case "tier" -> System.out.println(JSON.writeValueAsString(tier(clients)));
                case "cluster" -> System.out.println(JSON.writeValueAsString(cluster(clients)));
                case "join" -> System.out.println(JSON.writeValueAsString(join(clients)));
                case "refusals" -> System.out.println(JSON.writeValueAsString(refusals(clients)));
                case "finish" -> System.out.println(JSON.writeValueAsString(finish(clients)));
                default -> throw new IllegalArgumentException(what);
            }
        }
        Clients.vanish();
    }

    static void work(Clients clients) throws Exception {
        try (Admin admin = clients.admin()) {
            Clients.createTopic(admin, "ledger", 2, "cleanup.policy=compact", "min.insync.replicas=1");
        }
        try (var plain = clients.producer("enable.idempotence=true")) {
            Clients.sendBatch(plain, Clients.record("ledger", 0, "k", "plain"), Clients.record("ledger", 1, "k", "p1"));
        }
        try (var consumer = clients.consumer("audit")) {
            consumer.assign(List.of(new TopicPartition("ledger", 0)));
            consumer.commitSync(Map.of(new TopicPartition("ledger", 0), new OffsetAndMetadata(1, "half")));
        }
        try (var producer = clients.transactionalProducer("billing")) {
            producer.beginTransaction();
            Clients.sendBatch(producer, Clients.record("ledger", 0, "k", "paid"), Clients.record("ledger", 1, "k", "q"));
            var offsets = Map.of(new TopicPartition("ledger", 1), new OffsetAndMetadata(2));
            producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata("readers"));
            producer.commitTransaction();
            producer.beginTransaction();
            Clients.sendBatch(producer, Clients.record("ledger", 0, "k", "never"));
            producer.abortTransaction();
        }
        var open = clients.transactionalProducer(OPEN_ID);
        open.beginTransaction();
        Clients.sendBatch(open, Clients.record("ledger", 0, "k", "pending"));
    }

    static ObjectNode tier(Clients clients) throws Exception {
        TopicPartition at = new TopicPartition("tiered", 0);
        try (Admin admin = clients.admin()) {
            Clients.createTopic(admin, at.topic(), 1, "remote.storage.enable=true", "local.retention.bytes=1",
                "retention.bytes=-1", "internal.segment.bytes=300", "file.delete.delay.ms=0");
            try (var producer = clients.producer("enable.idempotence=true")) {
                for (int number = 0; number < 20; number++) {
                    Clients.sendBatch(producer, Clients.record(at.topic(), 0, "k", "theirs " + number));
                }
            }
            Clients.waitUntil("segments are in remote storage alone", () ->
                    offset(admin, at, OffsetSpec.earliestLocal(), IsolationLevel.READ_UNCOMMITTED) >= 10);
            long local = offset(admin, at, OffsetSpec.earliestLocal(), IsolationLevel.READ_UNCOMMITTED);
            return JSON.createObjectNode().put("local", local);
        }
    }

    static void upgrade(Clients clients) throws Exception {
        try (Admin admin = clients.admin()) {
            var supported = admin.describeFeatures().featureMetadata().get().supportedFeatures();
            var finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            // the main one first, since it says which levels others may have
            var names = new ArrayList<>(supported.keySet());
            names.sort((a, b) -> Boolean.compare(b.equals("metadata.version"), a.equals("metadata.version")));
            for (String name : names) {
                short level = supported.get(name).maxVersion();
                if (level == (finalized.containsKey(name) ? finalized.get(name).maxVersionLevel() : 0)) continue;
                admin.updateFeatures(Map.of(name, new FeatureUpdate(level, FeatureUpdate.UpgradeType.UPGRADE)),
                    new UpdateFeaturesOptions()).all().get();
                Clients.waitUntil(name + " is raised", () -> {
                    var now = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(name);
                    return now != null && now.maxVersionLevel() == level;
                });
            }
        }
    }

    static ObjectNode cluster(Clients clients) throws Exception {
        ObjectNode cluster = JSON.createObjectNode();
        try (Admin admin = clients.admin()) {
            ObjectNode features = cluster.putObject("features");
            new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()).forEach(
                (name, range) -> features.put(name, range.maxVersionLevel()));
            ArrayNode users = cluster.putArray("users");
            new TreeSet<>(admin.describeUserScramCredentials().all().get().keySet()).forEach(users::add);
            ArrayNode topics = cluster.putArray("topics");
            new TreeSet<>(admin.listTopics().names().get()).forEach(topics::add);
        }
        return cluster;
    }

    static ObjectNode state(Clients clients) throws Exception {
        ObjectNode state = JSON.createObjectNode();
        try (Admin admin = clients.admin()) {
            var names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            var topics = new TreeMap<>(admin.describeTopics(new TreeSet<>(names)).allTopicNames().get());
            for (TopicDescription topic : topics.values()) {
                ObjectNode node = state.withObject("/topics").putObject(topic.name());
                node.put("id", topic.topicId().toString()).put("partitions", topic.partitions().size());
                config(admin, topic.name(), node.putObject("config"));
                if (!topic.isInternal()) partitions(clients, admin, topic, node.putArray("read"));
            }
            for (String group : List.of("audit", "readers")) {
                var offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                ObjectNode node = state.withObject("/groups").putObject(group);
                offsets.forEach((at, offset) -> node.put(at.toString(), offset.offset() + " " + offset.metadata()));
            }
            var transactions = new TreeMap<String, String>();
            for (var one : admin.listTransactions().all().get()) {
                transactions.put(one.transactionalId(), one.state() + " " + one.producerId());
            }
            state.set("transactions", JSON.valueToTree(transactions));
        }
        return state;
    }

    static void config(Admin admin, String topic, ObjectNode node) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var entries = new ArrayList<>(admin.describeConfigs(List.of(resource)).all().get().get(resource).entries());
        entries.removeIf(entry -> entry.source() != ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        entries.sort((a, b) -> a.name().compareTo(b.name()));
        entries.forEach(entry -> node.put(entry.name(), entry.value()));
    }

    /** Of each partition its first offset, its end for each isolation, and the values that are committed. */
    static void partitions(Clients clients, Admin admin, TopicDescription topic, ArrayNode read) throws Exception {
        for (int number = 0; number < topic.partitions().size(); number++) {
            TopicPartition at = new TopicPartition(topic.name(), number);
            long stable = offset(admin, at, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED);
            ObjectNode node = read.addObject();
            node.put("start", offset(admin, at, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED));
            node.put("end", offset(admin, at, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)).put("stable", stable);
            ArrayNode values = node.putArray("values");
            try (var consumer = clients.consumer("none", "isolation.level=read_committed")) {
                consumer.assign(List.of(at));
                consumer.seekToBeginning(List.of(at));
                while (consumer.position(at) < stable) {
                    for (var record : consumer.poll(Duration.ofMillis(200))) {
                        values.add(record.offset() + ":" + new String(record.value(), StandardCharsets.UTF_8));
                    }
                }
            }
        }
    }

    static long offset(Admin admin, TopicPartition at, OffsetSpec spec, IsolationLevel isolation) throws Exception {
        return admin.listOffsets(Map.of(at, spec), new ListOffsetsOptions(isolation)).partitionResult(at).get().offset();
    }

    static ObjectNode join(Clients clients) throws Exception {
        long start = System.nanoTime();
        try (var consumer = clients.consumer("members")) {
            consumer.subscribe(List.of("ledger"));
            while (consumer.assignment().isEmpty()) consumer.poll(Duration.ofMillis(100));
            return JSON.createObjectNode().put("seconds", (System.nanoTime() - start) / 1_000_000_000L);
        }
    }

    static ObjectNode refusals(Clients clients) throws Exception {
        var modern = clients.consumer("modern", "group.protocol=consumer");
        modern.subscribe(List.of("ledger"));
        while (modern.assignment().isEmpty()) modern.poll(Duration.ofMillis(100));
        Map<String, Object> config = Map.of("bootstrap.servers", clients.bootstrap, "group.id", "share");
        var share = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        share.subscribe(List.of("ledger"));
        share.poll(Duration.ofSeconds(2));
        ObjectNode answer = JSON.createObjectNode();
        try (Admin admin = clients.admin()) {
            Clients.waitUntil("the share group has a member", () ->
                    !admin.describeShareGroups(List.of("share")).all().get().get("share").members().isEmpty());
            var offsets = Map.of(new TopicPartition("ledger", 0), new OffsetAndMetadata(1));
            for (String group : List.of("modern", "share")) {
                ArrayNode node = answer.putArray(group);
                node.add(failure(() -> admin.alterConsumerGroupOffsets(group, offsets).all().get()));
                try (var producer = clients.transactionalProducer("refused-" + group)) {
                    producer.beginTransaction();
                    node.add(failure(() -> {
                        producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(group));
                        return null;
                    }));
                }
            }
        }
        return answer;
    }

    /** The name of the exception of Kafka's, or null. */
    static String failure(Callable<?> action) throws Exception {
        try {
            action.call();
            return null;
        } catch (ExecutionException | KafkaException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }

    static ObjectNode finish(Clients clients) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        TopicPartition at = new TopicPartition("ledger", 0);
        try (Admin admin = clients.admin()) {
            var before = admin.describeTransactions(List.of(OPEN_ID)).description(OPEN_ID).get();
            answer.put("transaction", before.state().toString());
            try (var again = clients.transactionalProducer(OPEN_ID)) {
                again.beginTransaction();
                Clients.sendBatch(again, Clients.record("ledger", 0, "k", "again"));
                again.commitTransaction();
            }
            Clients.waitUntil("the open transaction ends", () ->
                    offset(admin, at, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
                            == offset(admin, at, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED));
            answer.put("aborted", true);
            try (var fresh = clients.producer("enable.idempotence=true")) {
                Clients.sendBatch(fresh, Clients.record("ledger", 0, "k", "fresh"));
            }
            ArrayNode ids = answer.putArray("producerIds");
            var producers = admin.describeProducers(List.of(at)).partitionResult(at).get().activeProducers();
            producers.stream().map(one -> one.producerId()).sorted().forEach(ids::add);
        }
        return answer;
    }
}
