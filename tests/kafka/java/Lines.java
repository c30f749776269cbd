import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Answers questions: each is a line of JSON on stdin, and its answer one on stdout. */
final class Lines {
    interface Asked {
        Object answer(JsonNode question) throws Exception;
    }

    static void answer(Asked asked) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.write(json.writeValueAsBytes(asked.answer(json.readTree(line))));
            System.out.write('\n');
            System.out.flush();
        }
    }
}
