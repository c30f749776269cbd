import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * Orders of LogBench to a log that stays open between them:
 *
 *   {"op": "hold", "dir": path, "clean": bool, "config": {…}}     opens it in place of the one held before
 *   {"op": "mark", "count": n, "id": producer, "sequence": next}  n transactions of one record, each with its marker and
 *                                                                 a look at the last stable offset, which is answered
 *   {"op": "snapshot"}                                            one transaction (not timed), then a snapshot
 *   {"op": "fetch", "committed": bool, "size": bytes}             all records as a consumer gets them
 *   {"op": "times", "first": n, "span": n, "count": n}            offsets by time; answers their sum
 *   {"op": "release"}                                             closes it
 */
class HeldLog {
    static UnifiedLog log;
    static final RequestLocal LOCAL = RequestLocal.withThreadConfinedCaching();

    static ObjectNode hold(JsonNode order) throws Exception {
        release();
        long start = System.nanoTime();
        log = LogBench.open(new File(order.get("dir").asText()), order, order.get("clean").asBoolean());
        long ns = System.nanoTime() - start;
        log.updateHighWatermark(log.logEndOffset());
        return RecordBench.answer(ns, log.logEndOffset(), log.size());
    }

    static ObjectNode release() {
        if (log != null) log.close();
        log = null;
        return RecordBench.answer(0, 0, 0);
    }

    static ObjectNode mark(JsonNode order) throws Exception {
        int count = order.get("count").asInt();
        long start = System.nanoTime();
        long stable = 0;
        for (int i = 0; i < count; i++) stable = transaction(order.get("id").asLong(), order.get("sequence").asInt() + i);
        return RecordBench.answer(System.nanoTime() - start, stable, log.size());
    }

    static long transaction(long producerId, int sequence) throws Exception {
        SimpleRecord record = new SimpleRecord(System.currentTimeMillis(), null, new byte[100]);
        MemoryRecords batch = MemoryRecords.withTransactionalRecords(Compression.NONE, producerId, (short) 0, sequence, record);
        log.appendAsLeader(batch, 0, AppendOrigin.CLIENT, LOCAL, VerificationGuard.SENTINEL, (short) 1);
        MemoryRecords marker = MemoryRecords.withEndTransactionMarker(producerId, (short) 0, new EndTransactionMarker(ControlRecordType.COMMIT, 0));
        log.appendAsLeader(marker, 0, AppendOrigin.COORDINATOR, LOCAL, VerificationGuard.SENTINEL, (short) 1);
        log.updateHighWatermark(log.logEndOffsetMetadata());
        return log.lastStableOffset();
    }

    static ObjectNode snapshot(JsonNode order) throws Exception {
        transaction(order.get("id").asLong(), order.get("sequence").asInt());
        long start = System.nanoTime();
        File written = log.producerStateManager().takeSnapshot(true).orElseThrow();
        return RecordBench.answer(System.nanoTime() - start, log.logEndOffset(), written.length());
    }

    static ObjectNode fetch(JsonNode order) throws Exception {
        FetchIsolation isolation = order.get("committed").asBoolean() ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK;
        long offset = log.logStartOffset();
        long count = 0;
        long bytes = 0;
        long start = System.nanoTime();
        try (BufferSupplier buffers = BufferSupplier.create()) {
            while (true) {
                FetchDataInfo fetched = log.read(offset, order.get("size").asInt(), isolation, true);
                if (fetched.records.sizeInBytes() == 0) break;
                Aborted aborted = new Aborted(fetched.abortedTransactions);
                for (RecordBatch batch : fetched.records.batches()) {
                    batch.ensureValid();
                    offset = batch.nextOffset();
                    if (aborted.hides(batch) || batch.isControlBatch()) continue;
                    try (CloseableIterator<Record> records = batch.streamingIterator(buffers)) {
                        while (records.hasNext()) {
                            count++;
                            bytes += records.next().valueSize();
                        }
                    }
                }
            }
        }
        return RecordBench.answer(System.nanoTime() - start, count, bytes);
    }

    /** What a read_committed consumer leaves out. */
    static class Aborted {
        final ArrayDeque<FetchResponseData.AbortedTransaction> coming = new ArrayDeque<>();
        final Set<Long> producers = new HashSet<>();

        Aborted(Optional<List<FetchResponseData.AbortedTransaction>> transactions) {
            List<FetchResponseData.AbortedTransaction> sorted = new ArrayList<>(transactions.orElse(List.of()));
            sorted.sort(Comparator.comparingLong(FetchResponseData.AbortedTransaction::firstOffset));
            coming.addAll(sorted);
        }

        boolean hides(RecordBatch batch) {
            while (!coming.isEmpty() && coming.peek().firstOffset() <= batch.lastOffset()) producers.add(coming.poll().producerId());
            if (batch.isControlBatch()) producers.remove(batch.producerId());
            return batch.isTransactional() && producers.contains(batch.producerId());
        }
    }

    static ObjectNode times(JsonNode order) throws Exception {
        long sum = 0;
        int count = order.get("count").asInt();
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long target = order.get("first").asLong() + i * RecordBench.STEP % order.get("span").asLong();
            sum += log.fetchOffsetByTimestamp(target, Optional.empty()).timestampAndOffsetOpt().orElseThrow().offset;
        }
        return RecordBench.answer(System.nanoTime() - start, sum, log.size());
    }
}
