import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the Java clients make of a configuration. A line on stdin: {"client": "producer"|"consumer", "values": {…},
 * "names": […]}; a line on stdout: the value of each name as text, or {"error": "class: message"}.
 */
public class ClientConfigs {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Lines.answer(ClientConfigs::answer);
    }

    static ObjectNode answer(JsonNode question) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        boolean isProducer = question.get("client").asText().equals("producer");
        Map<String, Object> values = new HashMap<>();
        question.get("values").properties().forEach(one -> values.put(one.getKey(), one.getValue().asText()));
        values.put("bootstrap.servers", "localhost:1");
        for (String side : new String[] {"key", "value"}) {
            values.put(side + (isProducer ? ".serializer" : ".deserializer"),
                "org.apache.kafka.common.serialization.ByteArray" + (isProducer ? "Serializer" : "Deserializer"));
        }
        try {
            AbstractConfig config = isProducer ? new ProducerConfig(values) : new ConsumerConfig(values);
            for (JsonNode name : question.get("names")) {
                Object value = config.values().get(name.asText());
                result.put(name.asText(), value == null ? null : value.toString());
            }
            if (isProducer) {
                Method timeout = KafkaProducer.class.getDeclaredMethod("configureDeliveryTimeout", ProducerConfig.class, Logger.class);
                timeout.setAccessible(true);
                Object effective = timeout.invoke(null, config, LoggerFactory.getLogger(ClientConfigs.class));
                result.put("delivery.timeout.ms", effective.toString());
            }
        } catch (InvocationTargetException refused) {
            return JSON.createObjectNode().put("error", refused.getCause().toString());
        } catch (RuntimeException refused) {
            return JSON.createObjectNode().put("error", refused.toString());
        }
        return result;
    }
}
