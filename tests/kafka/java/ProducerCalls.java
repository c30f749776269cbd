import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Calls of the real producer in any order, with a broker at args[0]. A line on stdin is a story: a list of calls
 * [method, producer, argument…], see `call`; on stdout a list, for each call "ok" or "class: message" of what it threw.
 * Topic "t" is made with two partitions.
 */
public class ProducerCalls {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final long SETTLING_MS = 50;

    private final Clients clients;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    ProducerCalls(Clients clients) {
        this.clients = clients;
    }

    public static void main(String[] args) throws Exception {
        Clients clients = new Clients(args[0]);
        try (Admin admin = clients.admin()) {
            Clients.createTopic(admin, "t", 2);
        }
        Lines.answer(story -> new ProducerCalls(clients).told(story));
        Clients.vanish();
    }

    ArrayNode told(JsonNode story) {
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode call : story) {
            try {
                call(call.get(0).asText(), call.get(1).asText(), call);
                answers.add("ok");
            } catch (ExecutionException failed) {
                answers.add(failed.getCause().toString());
                settle();
            } catch (Exception refused) {
                answers.add(refused.toString());
            }
        }
        producers.values().forEach(producer -> producer.close(Duration.ZERO));
        return answers;
    }

    /** A future is done a moment before its producer enters the error state. */
    private static void settle() {
        try {
            Thread.sleep(SETTLING_MS);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private void call(String method, String name, JsonNode call) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        switch (method) {
            case "open" -> producers.put(name, clients.producer(settings(call.get(2))));
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "send" -> {  // and wait for what comes of it
                byte[] value = new byte[call.get(3).asInt()];
                var sent = producer.send(new ProducerRecord<>("t", call.get(2).asInt(), null, value));
                producer.flush();
                sent.get();
            }
            case "offsets" -> producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition("t", 0), new OffsetAndMetadata(call.get(3).asLong())),
                    new ConsumerGroupMetadata(
                            call.get(2).asText(), call.get(4).asInt(), call.get(5).asText(), Optional.empty()));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "flush" -> producer.flush();
            case "close" -> producer.close();
            default -> throw new IllegalArgumentException(method);
        }
    }

    private static String[] settings(JsonNode values) {
        return values.properties().stream().map(one -> one.getKey() + "=" + one.getValue().asText())
                .toArray(String[]::new);
    }
}
