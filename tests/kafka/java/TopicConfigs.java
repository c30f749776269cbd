import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What a broker without remote storage says to a topic's configuration. A line on stdin: {"values": {…}, "present": {…},
 * "defaults": {…}}, the last by the names of topics; a line on stdout: the message of the refusal, or null.
 */
public class TopicConfigs {
    public static void main(String[] args) throws Exception {
        Lines.answer(question -> {
            try {
                LogConfig.validate(texts(question.get("present")), texts(question.get("values")), texts(question.get("defaults")), false);
                return null;
            } catch (RuntimeException refused) {
                return refused.getMessage();
            }
        });
    }

    static Map<String, String> texts(JsonNode values) {
        Map<String, String> result = new HashMap<>();
        values.properties().forEach(one -> result.put(one.getKey(), one.getValue().asText()));
        return result;
    }
}
