import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What a broker without remote storage says to a topic's configuration. A line on stdin: {"values": {…}, "present": {…},
 * "defaults": {…}}, the last by the names of topics; a line on stdout: the message of the refusal, or null.
 */
public class TopicConfigs {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            String answer = null;
            try {
                LogConfig.validate(texts(question.get("present")), texts(question.get("values")), texts(question.get("defaults")), false);
            } catch (RuntimeException refused) {
                answer = refused.getMessage();
            }
            out.append(JSON.writeValueAsString(answer)).append('\n');
        }
        System.out.print(out);
    }

    static Map<String, String> texts(JsonNode values) {
        Map<String, String> result = new HashMap<>();
        values.properties().forEach(one -> result.put(one.getKey(), one.getValue().asText()));
        return result;
    }
}
