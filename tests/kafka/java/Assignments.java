import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks the Java client's assignors. A line on stdin: {"counts": {topic: n}, "members": {id: {"topics": [], "instance":
 * id|null, "owned": [[topic, n]], "generation": n}}}; a line on stdout: {assignor: {id: ["t-0", ...]}}. And with the
 * argument "hash": a text as JSON a line on stdin, its hash and its partition of 50 on stdout.
 */
public class Assignments {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Lines.answer(question -> args.length > 0 ? hash(question.asText()) : answer(question));
    }

    static String hash(String text) {
        return text.hashCode() + " " + org.apache.kafka.common.utils.Utils.abs(text.hashCode()) % 50 + " "
            + org.apache.kafka.common.utils.Utils.murmur2(text.getBytes(StandardCharsets.UTF_8));
    }

    static ObjectNode answer(JsonNode question) {
        ObjectNode result = JSON.createObjectNode();
        ask("range", new RangeAssignor(), question, result);
        ask("roundrobin", new RoundRobinAssignor(), question, result);
        ask("sticky", new StickyAssignor() {
            @Override
            public MemberData memberData(Subscription subscription) {
                return new MemberData(subscription.ownedPartitions(), subscription.generationId());
            }
        }, question, result);
        ask("cooperative", new CooperativeStickyAssignor(), question, result);
        return result;
    }

    static void ask(String name, AbstractPartitionAssignor assignor, JsonNode question, ObjectNode result) {
        Map<String, Integer> counts = new HashMap<>();
        question.get("counts").properties().forEach(one -> counts.put(one.getKey(), one.getValue().asInt()));
        Map<String, Subscription> members = new HashMap<>();
        question.get("members").properties().forEach(one -> members.put(one.getKey(), subscription(one.getValue())));
        ObjectNode assigned = result.putObject(name);
        assignor.assign(counts, members).forEach((member, partitions) -> {
            List<String> names = new ArrayList<>();
            partitions.forEach(partition -> names.add(partition.toString()));
            names.sort(null);
            ArrayNode row = assigned.putArray(member);
            names.forEach(row::add);
        });
    }

    static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(one -> owned.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        Subscription subscription = new Subscription(topics, null, owned, member.get("generation").asInt(), Optional.empty());
        subscription.setGroupInstanceId(Optional.ofNullable(member.get("instance").asText(null)));
        return subscription;
    }
}
