import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

/**
 * GoldenSchemas DIRECTORY: every record type of every internal topic in every version, and what does not parse.
 *
 * Each log is named after the decoder option that reads it.
 */
public final class GoldenSchemas {
    /** One record: null where the log has null. */
    private record Pair(byte[] key, byte[] value) { }

    private final Path directory;
    private final Filler filler = new Filler();

    private GoldenSchemas(Path directory) {
        this.directory = directory;
    }

    public static void main(String[] args) throws Exception {
        GoldenSchemas golden = new GoldenSchemas(Path.of(args[0]));
        golden.groups();
        golden.transactions();
        golden.shares();
        golden.clusterMetadata();
        golden.remoteMetadata();
    }

    private void groups() throws Exception {
        List<Pair> pairs = new ArrayList<>();
        for (var type : org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values())
            coordinator(pairs, type.newRecordKey(), type.newRecordValue(), type.lowestSupportedVersion(),
                type.highestSupportedVersion());
        for (GroupMetadataValue value : consumerGroups())
            pairs.add(new Pair(key(new GroupMetadataKey().setGroup("consumers")),
                MessageUtil.toVersionPrefixedBytes(GroupMetadataValue.HIGHEST_SUPPORTED_VERSION, value)));
        write("offsets-decoder", pairs);
    }

    private void transactions() throws Exception {
        List<Pair> pairs = new ArrayList<>();
        for (var type : org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType.values())
            coordinator(pairs, type.newRecordKey(), type.newRecordValue(), type.lowestSupportedVersion(),
                type.highestSupportedVersion());
        write("transaction-log-decoder", pairs);
    }

    private void shares() throws Exception {
        List<Pair> pairs = new ArrayList<>();
        for (var type : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values())
            coordinator(pairs, type.newRecordKey(), type.newRecordValue(), type.lowestSupportedVersion(),
                type.highestSupportedVersion());
        write("share-group-state-decoder", pairs);
    }

    private void coordinator(List<Pair> pairs, ApiMessage key, ApiMessage value, short lowest, short highest)
            throws Exception {
        for (ApiMessage oneKey : filler.variants(key.getClass(), (short) 0)) {
            pairs.add(new Pair(key(oneKey), null));
        }
        for (short version = lowest; version <= highest; version++)
            for (ApiMessage one : filler.variants(value.getClass(), version))
                pairs.add(new Pair(key(key), MessageUtil.toVersionPrefixedBytes(version, one)));
        byte[] whole = MessageUtil.toVersionPrefixedBytes(highest, filler.variants(value.getClass(), highest).get(1));
        for (byte[] broken : broken(whole)) pairs.add(new Pair(key(key), broken));
        for (byte[] broken : broken(key(filler.variants(key.getClass(), (short) 0).get(1))))
            pairs.add(new Pair(broken, whole));
    }

    /** Classic groups of consumers, whose members' metadata the tool decodes as well. */
    private List<GroupMetadataValue> consumerGroups() throws Exception {
        List<GroupMetadataValue> groups = new ArrayList<>();
        for (short inner = ConsumerProtocolSubscription.LOWEST_SUPPORTED_VERSION; inner <= 3; inner++) {
            List<byte[]> subscriptions = new ArrayList<>();
            List<byte[]> assignments = new ArrayList<>();
            for (ApiMessage one : filler.variants(ConsumerProtocolSubscription.class, inner))
                subscriptions.add(MessageUtil.toVersionPrefixedBytes(inner, one));
            for (ApiMessage one : filler.variants(ConsumerProtocolAssignment.class, inner))
                assignments.add(MessageUtil.toVersionPrefixedBytes(inner, one));
            subscriptions.addAll(List.of(broken(subscriptions.get(1))));
            assignments.addAll(List.of(broken(assignments.get(1))));
            List<GroupMetadataValue.MemberMetadata> members = new ArrayList<>();
            for (int i = 0; i < Math.max(subscriptions.size(), assignments.size()); i++)
                members.add(new GroupMetadataValue.MemberMetadata().setMemberId("m" + i).setClientId("c")
                    .setClientHost("/127.0.0.1").setSubscription(subscriptions.get(i % subscriptions.size()))
                    .setAssignment(assignments.get(i % assignments.size())));
            groups.add(new GroupMetadataValue().setProtocolType(inner < 3 ? "consumer" : "connect").setGeneration(3)
                .setProtocol("range").setLeader("m0").setMembers(members));
        }
        return groups;
    }

    private void clusterMetadata() throws Exception {
        List<Pair> pairs = new ArrayList<>();
        byte[] whole = null;
        for (MetadataRecordType type : MetadataRecordType.values()) {
            for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(); version++) {
                for (ApiMessage one : filler.variants(type.newMetadataRecord().getClass(), version)) {
                    whole = framed(one, version);
                    pairs.add(new Pair(null, whole));
                }
            }
            for (byte[] broken : broken(whole)) pairs.add(new Pair(null, broken));
        }
        for (String hex : List.of("01", "0100", "010000", "0063" + "00", "01ff7f00", "01ffffffffff", "0100ff7f", "018000",
                "0100ffffffff0f", "01ffffffff0f00", "ff0000", "00"))
            pairs.add(new Pair(Clients.bytes("key"), java.util.HexFormat.of().parseHex(hex)));
        pairs.add(new Pair(null, null));
        write("cluster-metadata-decoder", pairs);
    }

    private void remoteMetadata() throws Exception {
        List<Pair> pairs = new ArrayList<>();
        for (RemoteLogMetadata one : remoteLogMetadata())
            pairs.add(new Pair(null, new RemoteLogMetadataSerde().serialize(one)));
        for (byte[] broken : broken(pairs.get(0).value())) pairs.add(new Pair(null, broken));
        for (var type : org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType.values())
            for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(); version++)
                for (ApiMessage one : filler.variants(type.newMetadataRecord().getClass(), version))
                    pairs.add(new Pair(Clients.bytes("key"), framed(one, version)));
        pairs.add(new Pair(null, null));
        write("remote-log-metadata-decoder", pairs);
    }

    private static List<RemoteLogMetadata> remoteLogMetadata() {
        TopicIdPartition partition = new TopicIdPartition(new Uuid(11, 12), 3, "tiered");
        RemoteLogSegmentId id = new RemoteLogSegmentId(partition, new Uuid(21, 22));
        Map<Integer, Long> epochs = new HashMap<>(Map.of(0, 0L, 1, 60L, 7, 90L));
        Optional<CustomMetadata> custom = Optional.of(new CustomMetadata(new byte[] {1, -2, 3}));
        List<RemoteLogMetadata> all = new ArrayList<>();
        all.add(new RemoteLogSegmentMetadata(id, 0, 100, LogFile.SOME_TIME, 5, LogFile.SOME_TIME, 1 << 20, epochs));
        all.add(new RemoteLogSegmentMetadata(id, 0, 100, -1, 5, LogFile.SOME_TIME, 1, Map.of(0, 0L), true));
        for (RemoteLogSegmentState state : RemoteLogSegmentState.values()) {
            all.add(new RemoteLogSegmentMetadata(
                id, 0, 100, LogFile.SOME_TIME, 5, LogFile.SOME_TIME, 9, custom, state, epochs));
            if (state != RemoteLogSegmentState.COPY_SEGMENT_STARTED)
                all.add(new RemoteLogSegmentMetadataUpdate(id, LogFile.SOME_TIME, custom, state, 5));
        }
        all.add(new RemoteLogSegmentMetadataUpdate(
            id, LogFile.SOME_TIME, Optional.empty(), RemoteLogSegmentState.COPY_SEGMENT_FINISHED, 5));
        for (RemotePartitionDeleteState state : RemotePartitionDeleteState.values())
            all.add(new RemotePartitionDeleteMetadata(partition, state, LogFile.SOME_TIME, 5));
        return all;
    }

    private void write(String decoder, List<Pair> pairs) throws Exception {
        LogFile log = new LogFile();
        for (int from = 0; from < pairs.size(); from += 7) {
            List<Pair> batch = pairs.subList(from, Math.min(from + 7, pairs.size()));
            log.add(batch.stream().map(pair -> new SimpleRecord(LogFile.SOME_TIME, pair.key(), pair.value()))
                .toArray(SimpleRecord[]::new));
        }
        log.write(LogFile.segment(directory, decoder));
        LogFile keyless = new LogFile();
        keyless.add(new SimpleRecord(LogFile.SOME_TIME, pairs.get(0).key(), pairs.get(0).value()));
        keyless.add(new SimpleRecord(LogFile.SOME_TIME, (byte[]) null, pairs.get(0).value()));
        keyless.add(new SimpleRecord(LogFile.SOME_TIME, new byte[0], new byte[0]));
        keyless.write(LogFile.segment(directory, decoder + "-keyless"));
    }

    private static byte[] key(ApiMessage key) {
        return MessageUtil.toCoordinatorTypePrefixedBytes(key);
    }

    /** Frame version, type and version as unsigned varints, then the message. */
    private static byte[] framed(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor out = new ByteBufferAccessor(ByteBuffer.allocate(20 + message.size(cache, version)));
        out.writeUnsignedVarint(remote(message) ? 0 : 1);
        out.writeUnsignedVarint(message.apiKey());
        out.writeUnsignedVarint(version);
        message.write(out, cache, version);
        return Arrays.copyOf(out.buffer().array(), out.buffer().position());
    }

    private static boolean remote(ApiMessage message) {
        return message.getClass().getName().contains(".remote.");
    }

    /** Cut, lengthened, of unknown version, with wild lengths. */
    private static byte[][] broken(byte[] whole) {
        List<byte[]> all = new ArrayList<>();
        for (int length : new int[] {0, 1, 2, 3, whole.length / 2, whole.length - 1})
            if (length <= whole.length) all.add(Arrays.copyOf(whole, length));
        all.add(Arrays.copyOf(whole, whole.length + 3));
        for (int position : new int[] {0, 1, 2, 3, 4, whole.length / 2}) {
            if (position >= whole.length) continue;
            for (int mask : new int[] {0x01, 0x7f, 0x80, 0xff}) {
                byte[] flipped = whole.clone();
                flipped[position] ^= (byte) mask;
                all.add(flipped);
            }
        }
        return all.toArray(new byte[0][]);
    }
}
