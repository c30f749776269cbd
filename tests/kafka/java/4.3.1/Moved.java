import java.io.File;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import kafka.log.LogManager;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** What the other classes ask of Kafka, where 4.3.1 has it otherwise than later releases. */
final class Moved {
    private Moved() { }

    /** As a broker that stops closes a log, once all is flushed. */
    static void close(UnifiedLog log) {
        log.close();
    }

    /** As a process that is killed: nothing is written any more. */
    static void letGo(UnifiedLog log) {
        log.closeHandlers();
    }

    /** What a cleaner leaves of batches. */
    static ByteBuffer filtered(MemoryRecords records, MemoryRecords.RecordFilter filter, ByteBuffer room) {
        return records.filterTo(filter, room, BufferSupplier.NO_CACHING).outputBuffer();
    }

    static StreamsRebalanceData topology(Map<String, StreamsRebalanceData.Subtopology> subtopologies) {
        return new StreamsRebalanceData(UUID.randomUUID(), Optional.empty(), Optional.empty(), subtopologies, Map.of());
    }

    /** A log manager whose cleaner cleans only when it is asked to. */
    static final class Logs extends LogManager {
        private final LogConfig defaults;

        Logs(List<File> roots, ConfigRepository configs, LogConfig defaults, CleanerConfig cleaner, int maxTransactionTimeoutMs,
                ProducerStateManagerConfig producers, Scheduler tasks, Time clock) {
            super(CollectionConverters.asScala(roots).toSeq(), CollectionConverters.asScala(List.<File>of()).toSeq(), configs, defaults,
                cleaner, 1, 1000, 1000, 1000, 1000, maxTransactionTimeoutMs, producers, 1000, tasks, new BrokerTopicStats(false),
                new LogDirFailureChannel(2), clock, false, 0, (cleanerConfig, directories, logs, failures, time) ->
                    new LogCleaner(cleanerConfig, directories, logs, failures, time) {
                        @Override public void startup() { }
                    });
            this.defaults = defaults;
        }

        void startWith(Set<String> topics) {
            var overrides = fetchTopicConfigOverrides(defaults, CollectionConverters.asScala(new HashSet<>(topics)).toSet());
            startupWithConfigOverrides(defaults, overrides, log -> false);
        }

        Collection<UnifiedLog> all() {
            return CollectionConverters.asJavaCollection(allLogs());
        }

        List<FileLock> locks() {
            return CollectionConverters.asJava(dirLocks());
        }

        /** Null if there is none. */
        UnifiedLog log(TopicPartition partition, boolean isFuture) {
            Option<UnifiedLog> found = getLog(partition, isFuture);
            return found.isEmpty() ? null : found.get();
        }

        UnifiedLog logMadeIfMissing(TopicPartition partition, boolean isNew, boolean isFuture, Uuid topicId) {
            return getOrCreateLog(partition, isNew, isFuture, Optional.of(topicId), Option.empty());
        }

        void truncate(TopicPartition partition, long offset) {
            truncateTo(CollectionConverters.asScala(Map.<TopicPartition, Object>of(partition, offset)), false);
        }
    }
}
