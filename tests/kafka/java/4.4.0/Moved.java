import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** What the other classes ask of Kafka, where 4.4.0 has it otherwise than other releases. */
final class Moved {
    private Moved() { }

    /** As a broker that stops closes a log, once all is flushed. */
    static void close(UnifiedLog log) {
        log.prepareActiveSegmentForClose();
        log.close();
    }

    /** As a process that is killed: nothing is written any more. */
    static void letGo(UnifiedLog log) {
        log.closeQuietly();
    }

    /** What a cleaner leaves of batches. */
    static ByteBuffer filtered(MemoryRecords records, MemoryRecords.RecordFilter filter, ByteBuffer room) {
        return records.filterTo(filter, room, BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer();
    }

    static StreamsRebalanceData topology(Map<String, StreamsRebalanceData.Subtopology> subtopologies) {
        return new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(), subtopologies, Map.of(), Map::of, Map::of);
    }

    /** A log manager whose cleaner cleans only when it is asked to. */
    static final class Logs extends LogManager {
        Logs(List<File> roots, ConfigRepository configs, LogConfig defaults, CleanerConfig cleaner, int maxTransactionTimeoutMs,
                ProducerStateManagerConfig producers, Scheduler tasks, Time clock) throws IOException {
            super(roots, List.of(), configs, defaults, cleaner, 1, 1000, 1000, 1000, 1000, maxTransactionTimeoutMs, producers, 1000,
                tasks, new BrokerTopicStats(false), new LogDirFailureChannel(2), clock, false, 0,
                (cleanerConfig, directories, logs, failures, time) -> new LogCleaner(cleanerConfig, directories, logs, failures, time) {
                    @Override public void startup() { }
                });
        }

        void startWith(Set<String> topics) throws Exception {
            startup(topics);
        }

        Collection<UnifiedLog> all() {
            return allLogs();
        }

        List<FileLock> locks() {
            return dirLocks();
        }

        /** Null if there is none. */
        UnifiedLog log(TopicPartition partition, boolean isFuture) {
            return getLog(partition, isFuture).orElse(null);
        }

        UnifiedLog logMadeIfMissing(TopicPartition partition, boolean isNew, boolean isFuture, Uuid topicId) throws IOException {
            return getOrCreateLog(partition, isNew, isFuture, Optional.of(topicId));
        }

        void truncate(TopicPartition partition, long offset) {
            truncateTo(Map.of(partition, offset), false);
        }
    }
}
