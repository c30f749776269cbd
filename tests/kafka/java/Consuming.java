package org.apache.kafka.clients.consumer.internals;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/** What the real consumer makes of fetched data; in this package because its classes are visible only there. */
public final class Consuming {
    private final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    private final FetchConfig config;
    private final Metrics metrics = new Metrics();
    private final FetchMetricsManager fetchMetrics =
        new FetchMetricsManager(metrics, new FetchMetricsRegistry("consumer"));
    private final SubscriptionState subscriptions =
        new SubscriptionState(new LogContext(), AutoOffsetResetStrategy.NONE);
    private final TopicPartition partition;
    private long position;

    public Consuming(TopicPartition partition, IsolationLevel isolation, long position) {
        this.partition = partition;
        this.config = new FetchConfig(1, Integer.MAX_VALUE, 0, Integer.MAX_VALUE, Integer.MAX_VALUE, true, "", isolation);
        this.position = position;
    }

    public long position() {
        return position;
    }

    public List<ConsumerRecord<byte[], byte[]>> records() {
        return records;
    }

    /** Takes in one fetched slice; the position is behind it then. */
    public void take(BaseRecords data, Optional<List<FetchResponseData.AbortedTransaction>> aborted) {
        FetchResponseData.PartitionData partitionData = new FetchResponseData.PartitionData().setRecords(data);
        partitionData.setAbortedTransactions(aborted.orElse(null));
        CompletedFetch fetch = new CompletedFetch(new LogContext().logger(Consuming.class), subscriptions,
            BufferSupplier.create(), partition, partitionData, new FetchMetricsAggregator(fetchMetrics, Set.of(partition)), position);
        Deserializers<byte[], byte[]> deserializers =
            new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer(), metrics);
        while (true) {
            List<ConsumerRecord<byte[], byte[]>> some = fetch.fetchRecords(config, deserializers, 1000);
            records.addAll(some);
            position = fetch.nextFetchOffset();
            if (some.isEmpty()) return;
        }
    }
}
