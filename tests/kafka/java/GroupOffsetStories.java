package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Replays offsets and markers in the real OffsetMetadataManager. A story a line on stdin, [{"do": …}, …]; a line on
 * stdout: what every "fetch", "expire" and "delete" step gives.
 */
public class GroupOffsetStories {
    static final ObjectMapper JSON = new ObjectMapper();
    static long now;
    static long epoch;

    /** A manager of groups that makes those of replayed offsets, and does nothing else. */
    static GroupMetadataManager groups(SnapshotRegistry registry, GroupCoordinatorMetricsShard metrics) throws Exception {
        GroupMetadataManager manager = (GroupMetadataManager) allocate(GroupMetadataManager.class);
        set(manager, "groups", new TimelineHashMap<String, Group>(registry, 0));
        set(manager, "logContext", new LogContext());
        set(manager, "log", new LogContext().logger(GroupOffsetStories.class));
        set(manager, "time", time());
        set(manager, "metrics", metrics);
        return manager;
    }

    static void set(Object target, String name, Object value) throws Exception {
        Field field = GroupMetadataManager.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(target, value);
    }

    static Time time() {
        return (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, arguments) -> now);
    }

    static Object allocate(Class<?> type) throws Exception {
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        return ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(type);
    }

    static class Metrics extends GroupCoordinatorMetricsShard {
        Metrics() {
            super(null, null, null);
        }

        @Override
        public void incrementNumOffsets() { }

        @Override
        public void decrementNumOffsets() { }

        @Override
        public void record(String sensor, double value) { }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ArrayNode results = JSON.createArrayNode();
            SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
            Metrics metrics = (Metrics) allocate(Metrics.class);
            OffsetMetadataManager offsets = new OffsetMetadataManager.Builder().withTime(time())
                .withSnapshotRegistry(registry).withGroupMetadataManager(groups(registry, metrics))
                .withGroupCoordinatorMetricsShard(metrics).withGroupCoordinatorConfig((Config) allocate(Config.class))
                .build();
            epoch = 0;
            for (JsonNode step : JSON.readTree(line)) {
                perform(registry, offsets, step, results);
            }
            out.append(results).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static class Config extends GroupCoordinatorConfig {
        Config() {
            super(null);
        }

        @Override
        public long offsetsRetentionMs() {
            return 1000;
        }
    }

    static void perform(SnapshotRegistry registry, OffsetMetadataManager offsets, JsonNode step, ArrayNode results) {
        String group = step.path("group").asText();
        List<CoordinatorRecord> records = new ArrayList<>();
        switch (step.get("do").asText()) {
            case "commit", "tombstone" -> offsets.replay(step.get("at").asLong(), step.path("pid").asLong(-1), key(step),
                step.get("do").asText().equals("commit") ? value(step) : null);
            case "marker" -> offsets.replayEndTransactionMarker(step.get("pid").asLong(),
                step.get("commit").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT);
            case "fetch" -> results.add(fetched(registry, offsets, step));
            case "expire" -> {
                now = step.get("now").asLong();
                offsets.cleanupExpiredOffsets(group, records);
                results.add(names(records));
            }
            case "delete" -> {
                offsets.deleteAllOffsets(group, records);
                results.add(names(records));
            }
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    static OffsetCommitKey key(JsonNode step) {
        return new OffsetCommitKey().setGroup(step.get("group").asText()).setTopic(step.get("topic").asText())
            .setPartition(step.get("partition").asInt());
    }

    static OffsetCommitValue value(JsonNode step) {
        return new OffsetCommitValue().setOffset(step.get("offset").asLong()).setCommitTimestamp(step.get("time").asLong())
            .setExpireTimestamp(step.get("expire").asLong());
    }

    static String fetched(SnapshotRegistry registry, OffsetMetadataManager offsets, JsonNode step) {
        OffsetFetchRequestData.OffsetFetchRequestGroup request = new OffsetFetchRequestData.OffsetFetchRequestGroup()
            .setGroupId(step.get("group").asText()).setTopics(List.of(new OffsetFetchRequestData.OffsetFetchRequestTopics()
                .setName(step.get("topic").asText()).setPartitionIndexes(List.of(step.get("partition").asInt()))));
        registry.idempotentCreateSnapshot(++epoch);
        OffsetFetchResponseData.OffsetFetchResponsePartitions partition = offsets
            .fetchOffsets(request, step.get("stable").asBoolean() ? Long.MAX_VALUE : epoch)
            .topics().get(0).partitions().get(0);
        return Errors.forCode(partition.errorCode()) + " " + partition.committedOffset();
    }

    static String names(List<CoordinatorRecord> records) {
        TreeSet<String> names = new TreeSet<>();
        for (CoordinatorRecord record : records) {
            OffsetCommitKey key = (OffsetCommitKey) record.key();
            names.add(key.group() + "/" + key.topic() + "-" + key.partition());
        }
        return String.join(" ", names);
    }
}
