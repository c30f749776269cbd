import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Clients of a broker on this machine that decide themselves where a batch ends: nothing is sent before flush(). */
final class Clients {
    private static final long PATIENCE_MS = 60_000;

    final String bootstrap;

    Clients(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    /** A producer with "name=value" settings. */
    KafkaProducer<byte[], byte[]> producer(String... settings) {
        Map<String, Object> config = settings(settings);
        config.put("bootstrap.servers", bootstrap);
        config.putIfAbsent("linger.ms", "20000");
        config.putIfAbsent("batch.size", "1000000");
        config.putIfAbsent("max.request.size", "4000000");
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** A producer that neither numbers its records nor waits for more than the leader. */
    KafkaProducer<byte[], byte[]> plainProducer(String... settings) {
        String[] all = Arrays.copyOf(settings, settings.length + 2);
        all[settings.length] = "enable.idempotence=false";
        all[settings.length + 1] = "acks=1";
        return producer(all);
    }

    KafkaProducer<byte[], byte[]> transactionalProducer(String transactionalId, String... settings) {
        String[] all = Arrays.copyOf(settings, settings.length + 2);
        all[settings.length] = "transactional.id=" + transactionalId;
        all[settings.length + 1] = "transaction.timeout.ms=600000";
        KafkaProducer<byte[], byte[]> producer = producer(all);
        producer.initTransactions();
        return producer;
    }

    KafkaConsumer<byte[], byte[]> consumer(String groupId, String... settings) {
        Map<String, Object> config = settings(settings);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", groupId);
        config.putIfAbsent("enable.auto.commit", "false");
        config.putIfAbsent("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Polls as a member of a Kafka Streams application would that reads a topic, until enough is done. */
    void joinStreams(String group, String topic, StreamsRebalanceData topology, Callable<Boolean> isEnough) throws Exception {
        var config = new ConsumerConfig(Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", "consumer",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "default.api.timeout.ms", "2500", "request.timeout.ms", "2000",
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class));
        try (var consumer = new AsyncKafkaConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer(), Optional.of(topology))) {
            consumer.subscribe(Set.of(topic), new StreamsRebalanceListener() {
                @Override
                public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {
                }

                @Override
                public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                    topology.setReconciledAssignment(assignment);
                }

                @Override
                public void onAllTasksLost() {
                    topology.setReconciledAssignment(StreamsRebalanceData.Assignment.EMPTY);
                }
            });
            do consumer.poll(Duration.ofMillis(100)); while (!isEnough.call());
            consumer.commitSync();
        }
    }

    /** A Kafka Streams application that counts what is in a topic; the broker makes the changelog. */
    static StreamsRebalanceData counting(String group, String topic) {
        var changelog = new StreamsRebalanceData.TopicInfo(Optional.empty(), Optional.empty(), Map.of());
        return Moved.topology(Map.of("0", new StreamsRebalanceData.Subtopology(
            Set.of(topic), Set.of(), Map.of(), Map.of(group + "-counts-changelog", changelog), List.of())));
    }

    static Map<String, Object> settings(String... settings) {
        Map<String, Object> config = new HashMap<>();
        for (String setting : settings) {
            int equals = setting.indexOf('=');
            config.put(setting.substring(0, equals), setting.substring(equals + 1));
        }
        return config;
    }

    static void createTopic(Admin admin, String name, int partitions, String... settings) throws Exception {
        Map<String, String> config = new HashMap<>();
        settings(settings).forEach((key, value) -> config.put(key, (String) value));
        NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.of((short) 1)).configs(config);
        admin.createTopics(List.of(topic)).all().get();
    }

    /** Sends the records as one batch for each partition. */
    @SafeVarargs
    static void sendBatch(KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]>... records)
            throws Exception {
        var sent = Arrays.stream(records).map(producer::send).toList();
        producer.flush();
        for (var record : sent) record.get();
    }

    static ProducerRecord<byte[], byte[]> record(String topic, int partition, String key, String value) {
        return new ProducerRecord<>(topic, partition, bytes(key), bytes(value));
    }

    static ProducerRecord<byte[], byte[]> recordAt(
            String topic, int partition, Long timestamp, String key, byte[] value, Header... headers) {
        return new ProducerRecord<>(topic, partition, timestamp, bytes(key), value, List.of(headers));
    }

    static Header header(String key, String value) {
        return new RecordHeader(key, bytes(value));
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static void waitUntil(String what, Callable<Boolean> reached) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!reached.call()) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("never happened: " + what);
            Thread.sleep(50);
        }
    }

    /** The action must fail: its failure is part of the story that the log tells. */
    static void mustFail(String what, Callable<?> action) throws Exception {
        try {
            action.call();
        } catch (ExecutionException | RuntimeException expected) {
            return;
        }
        throw new IllegalStateException("did not fail: " + what);
    }

    /** Ends the JVM as a crash of the client would: an open transaction stays open. */
    static void vanish() {
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
