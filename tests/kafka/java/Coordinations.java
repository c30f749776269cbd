import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import kafka.coordinator.transaction.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.coordinator.transaction.*;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * Drives the real TransactionCoordinator over a log that is a list. One workload a line on stdin, one answer a line on
 * stdout: {"version": n, "steps": [{"do": name, ...}]} gives, for each step, what was answered, appended and sent, and
 * what is known of every transactional id after it. An append waits until a step says "written" or "failed"; markers
 * are "sent" to nobody, a step says "marker" for each that is written, and then "complete".
 */
public class Coordinations {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        Lines.answer(question -> new Coordinations(question).run());
        Runtime.getRuntime().halt(0);
    }

    record Append(String id, TxnTransitMetadata next, Function1<Errors, BoxedUnit> callback) { }
    record Completion(TransactionMetadata metadata, TxnTransitMetadata next) { }

    final JsonNode workload;
    final TransactionVersion version;
    final Map<String, Append> appends = new LinkedHashMap<>();
    final Map<String, Completion> completions = new LinkedHashMap<>();
    final Map<String, byte[]> log = new LinkedHashMap<>();
    final Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, arguments) -> method.getName().equals("milliseconds") ? (Object) this.now : fail(method.getName()));
    long now = 0;
    long nextProducerId = 0;
    ArrayNode events;
    Manager manager;
    TransactionCoordinator coordinator;

    Coordinations(JsonNode workload) throws Exception {
        this.workload = workload;
        this.version = TransactionVersion.fromFeatureLevel((short) workload.get("version").asInt());
        start(new ConcurrentHashMap<>());
    }

    static Object fail(String name) {
        throw new IllegalStateException("not here: " + name);
    }

    class Manager extends TransactionStateManager {
        Manager(TransactionConfig config) {
            super(0, null, null, null, config, time, new Metrics());
        }

        @Override
        public TransactionVersion transactionVersionLevel() {
            return version;
        }

        @Override
        public int partitionFor(String transactionalId) {
            return 0;
        }

        @Override
        public void appendTransactionToLog(String id, int coordinatorEpoch, TxnTransitMetadata next,
                                           Function1<Errors, BoxedUnit> callback, Function1<Errors, Object> retryOnError,
                                           RequestLocal requestLocal) {
            event("append").add(id).add(HEX.formatHex(TransactionLog.valueToBytes(next, version)));
            appends.put(id, new Append(id, next, callback));
        }
    }

    static class Markers extends TransactionMarkerChannelManager {
        Coordinations outer;

        Markers() {
            super(null, null, null, null, null); // never called
        }

        @Override
        public void addTxnMarkersToSend(int coordinatorEpoch, TransactionResult result, TransactionMetadata metadata,
                                        TxnTransitMetadata next) {
            outer.sent(coordinatorEpoch, result, metadata, next);
        }
    }

    void sent(int coordinatorEpoch, TransactionResult result, TransactionMetadata metadata, TxnTransitMetadata next) {
        ArrayNode event = event("sent").add(metadata.transactionalId()).add(coordinatorEpoch)
            .add(result == TransactionResult.COMMIT).add(metadata.producerId()).add(metadata.producerEpoch())
            .add(metadata.clientTransactionVersion().featureLevel());
        partitions(metadata.topicPartitions(), event.addArray());
        completions.put(metadata.transactionalId(), new Completion(metadata, next));
    }

    ArrayNode event(String name) {
        return events.addArray().add(name);
    }

    void start(ConcurrentHashMap<String, TransactionMetadata> loaded) throws Exception {
        TransactionConfig config = new TransactionConfig(604800000, 900000, 1, (short) 1, 1048576, 1048576, 1, 10000,
            3600000, false, 30000);
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        Markers markers = (Markers) ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(Markers.class);
        markers.outer = this;
        manager = new Manager(config);
        manager.addLoadedTransactionsToCache(0, 5, loaded);
        ProducerIdManager ids = () -> nextProducerId++;
        coordinator = new TransactionCoordinator(config, null, () -> ids, manager, markers, time, new LogContext());
    }

    ObjectNode run() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode steps = answer.putArray("steps");
        for (JsonNode step : workload.get("steps")) {
            ObjectNode result = steps.addObject();
            events = result.putArray("events");
            try {
                perform(step);
            } catch (RuntimeException broken) {
                event("broken").add(broken.getClass().getName());
            }
            known(result.putArray("known"));
        }
        return answer;
    }

    void perform(JsonNode step) throws Exception {
        String id = step.path("id").asText(null);
        switch (step.get("do").asText()) {
            case "load" -> log.put(id, HEX.parseHex(step.get("value").asText()));
            case "restart" -> restart();
            case "time" -> now += step.get("ms").asLong();
            case "ids" -> nextProducerId = step.get("next").asLong();
            case "init" -> coordinator.handleInitProducerId(id, step.get("timeout").asInt(), false, false, expected(step),
                this::initialized, RequestLocal.noCaching());
            case "add" -> coordinator.handleAddPartitionsToTransaction(id, pid(step), epoch(step), partitions(step),
                error -> answered("add", error, -1, -1), client(step), RequestLocal.noCaching());
            case "verify" -> coordinator.handleVerifyPartitionsInTransaction(id, pid(step), epoch(step), partitions(step),
                this::verified);
            case "end" -> coordinator.handleEndTransaction(id, pid(step), epoch(step),
                step.get("commit").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT, client(step),
                (error, pid, epoch) -> answered("end", error, (Long) pid, (Short) epoch), RequestLocal.noCaching());
            case "timeouts" -> coordinator.abortTimedOutTransactions(
                one -> (error, pid, epoch) -> answered("timeout", error, -1, -1));
            case "written" -> written(appends.remove(id));
            case "failed" -> failed(appends.remove(id), Errors.valueOf(step.get("error").asText()));
            case "marker" -> completions.get(id).metadata().removePartition(
                new TopicPartition(step.get("topic").asText(), step.get("partition").asInt()));
            case "complete" -> complete(completions.remove(id));
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    void restart() throws Exception {
        ConcurrentHashMap<String, TransactionMetadata> loaded = new ConcurrentHashMap<>();
        log.forEach((id, value) -> {
            byte[] key = TransactionLog.keyToBytes(id);
            TransactionLog.ReadResult read = TransactionLog.read(ByteBuffer.wrap(key), ByteBuffer.wrap(value));
            loaded.put(id, ((TransactionLog.TxnRecord) read).metadata());
        });
        appends.clear();
        completions.clear();
        start(loaded);
        for (String id : new TreeSet<>(loaded.keySet())) {
            TransactionMetadata metadata = loaded.get(id);
            if (metadata.state() == TransactionState.PREPARE_COMMIT || metadata.state() == TransactionState.PREPARE_ABORT) {
                TransactionResult result = metadata.state() == TransactionState.PREPARE_COMMIT
                    ? TransactionResult.COMMIT : TransactionResult.ABORT;
                sent(5, result, metadata, metadata.prepareComplete(now));
            }
        }
    }

    void written(Append append) {
        log.put(append.id(), TransactionLog.valueToBytes(append.next(), version));
        metadata(append.id()).completeTransitionTo(append.next());
        append.callback().apply(Errors.NONE);
    }

    void failed(Append append, Errors error) {
        metadata(append.id()).pendingState(Optional.empty());
        append.callback().apply(error);
    }

    void complete(Completion completion) {
        byte[] value = TransactionLog.valueToBytes(completion.next(), version);
        event("append").add(completion.metadata().transactionalId()).add(HEX.formatHex(value));
        log.put(completion.metadata().transactionalId(), value);
        completion.metadata().completeTransitionTo(completion.next());
    }

    BoxedUnit initialized(InitProducerIdResult result) {
        return answered("init", result.error(), result.producerId(), result.producerEpoch());
    }

    BoxedUnit verified(org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnResult result) {
        TreeSet<String> errors = new TreeSet<>();
        result.topicResults().forEach(topic -> topic.resultsByPartition().forEach(partition -> errors.add(
            topic.name() + "-" + partition.partitionIndex() + " " + Errors.forCode(partition.partitionErrorCode()))));
        ArrayNode event = event("verify");
        errors.forEach(event::add);
        return BoxedUnit.UNIT;
    }

    BoxedUnit answered(String name, Errors error, long pid, int epoch) {
        event(name).add(error.name()).add(pid).add(epoch);
        return BoxedUnit.UNIT;
    }

    TransactionMetadata metadata(String id) {
        return manager.transactionMetadataCache().apply(0).metadataPerTransactionalId().get(id);
    }

    void known(ArrayNode result) {
        for (String id : new TreeSet<>(manager.transactionMetadataCache().apply(0).metadataPerTransactionalId().keySet())) {
            TransactionMetadata one = metadata(id);
            ArrayNode row = result.addArray().add(id).add(one.producerId()).add(one.prevProducerId());
            row.add(nextProducerId(one)).add(one.producerEpoch()).add(one.lastProducerEpoch()).add(one.txnTimeoutMs());
            row.add(one.state().name()).add(one.pendingState().map(Enum::name).orElse(null));
            row.add(one.txnStartTimestamp()).add(one.txnLastUpdateTimestamp());
            row.add(one.clientTransactionVersion().featureLevel()).add(one.hasFailedEpochFence());
            partitions(one.topicPartitions(), row.addArray());
        }
    }

    static long nextProducerId(TransactionMetadata one) {
        try {
            Field field = TransactionMetadata.class.getDeclaredField("nextProducerId");
            field.setAccessible(true);
            return field.getLong(one);
        } catch (ReflectiveOperationException missing) {
            throw new IllegalStateException(missing);
        }
    }

    static void partitions(Set<TopicPartition> partitions, ArrayNode out) {
        List<String> names = new ArrayList<>();
        partitions.forEach(one -> names.add(one.toString()));
        names.sort(null);
        names.forEach(out::add);
    }

    static Set<TopicPartition> partitions(JsonNode step) {
        Set<TopicPartition> found = new HashSet<>();
        step.get("partitions").forEach(one -> found.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        return found;
    }

    static Option<ProducerIdAndEpoch> expected(JsonNode step) {
        return step.has("pid") ? Option.apply(new ProducerIdAndEpoch(pid(step), epoch(step))) : Option.empty();
    }

    static long pid(JsonNode step) {
        return step.get("pid").asLong();
    }

    static short epoch(JsonNode step) {
        return (short) step.get("epoch").asInt();
    }

    static TransactionVersion client(JsonNode step) {
        return TransactionVersion.fromFeatureLevel((short) step.get("client").asInt());
    }
}
