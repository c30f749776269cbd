import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Orders of LogBench to a broker, by the Java clients with their defaults; a producer is made once for each address:
 *
 *   {"op": "transact", "bootstrap": address, "topic": name, "records": per transaction, "count": transactions, "size": bytes}
 *   {"op": "chain", "bootstrap": address, "from": topic, "to": topic, "records": per transaction, "count": of all records}
 *                         reads partition 0 from the beginning, sends each record on, offsets in the same transaction
 */
class HeldClients {
    static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
    static final String GROUP = "bench";

    static ObjectNode transact(JsonNode order) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(order.get("bootstrap").asText());
        String topic = order.get("topic").asText();
        int count = order.get("count").asInt();
        int records = order.get("records").asInt();
        byte[] value = new byte[order.get("size").asInt()];
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            producer.beginTransaction();
            for (int j = 0; j < records; j++) producer.send(new ProducerRecord<>(topic, value));
            producer.commitTransaction();
        }
        return RecordBench.answer(System.nanoTime() - start, (long) count * records, (long) count * records * value.length);
    }

    static ObjectNode chain(JsonNode order) throws Exception {
        String bootstrap = order.get("bootstrap").asText();
        KafkaProducer<byte[], byte[]> producer = producer(bootstrap);
        TopicPartition source = new TopicPartition(order.get("from").asText(), 0);
        String target = order.get("to").asText();
        int total = order.get("count").asInt();
        int count = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, order.get("records").asInt())) {
            consumer.assign(List.of(source));
            consumer.seekToBeginning(List.of(source));
            consumer.position(source);
            long start = System.nanoTime();
            while (count < total) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofSeconds(10));
                if (polled.isEmpty()) throw new IllegalStateException("only " + count + " records came");
                producer.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    producer.send(new ProducerRecord<>(target, record.key(), record.value()));
                    count++;
                }
                Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(source, new OffsetAndMetadata(consumer.position(source)));
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
            return RecordBench.answer(System.nanoTime() - start, count, 0);
        }
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap) {
        return PRODUCERS.computeIfAbsent(bootstrap, address -> {
            Properties config = new Properties();
            config.put("bootstrap.servers", address);
            config.put("transactional.id", "bench");
            KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
            producer.initTransactions();
            return producer;
        });
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, int recordCount) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", GROUP);
        config.put("isolation.level", "read_committed");
        config.put("enable.auto.commit", "false");
        config.put("max.poll.records", Integer.toString(recordCount));
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}
