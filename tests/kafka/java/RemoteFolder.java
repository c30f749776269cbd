import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage that is a folder, `rsm.config.dir`, with a folder for each segment. Kafka's own is in no jar of 4.4.0. */
public final class RemoteFolder implements RemoteStorageManager {
    private Path root;

    @Override
    public void configure(Map<String, ?> configs) {
        root = Path.of((String) configs.get("dir"));
    }

    @Override
    public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(
            RemoteLogSegmentMetadata segment, LogSegmentData data) throws RemoteStorageException {
        try {
            Path folder = Files.createDirectories(folder(segment));
            Files.copy(data.logSegment(), folder.resolve("LOG"));
            Files.copy(data.offsetIndex(), folder.resolve(IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), folder.resolve(IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(), folder.resolve(IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), folder.resolve(IndexType.TRANSACTION.name()));
            }
            byte[] epochs = new byte[data.leaderEpochIndex().remaining()];
            data.leaderEpochIndex().duplicate().get(epochs);
            Files.write(folder.resolve(IndexType.LEADER_EPOCH.name()), epochs);
            return Optional.empty();
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE - 1);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int last) throws RemoteStorageException {
        byte[] all = read(segment, "LOG");
        return new ByteArrayInputStream(Arrays.copyOfRange(all, start, Math.min(all.length, last + 1)));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return new ByteArrayInputStream(read(segment, type.name()));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) {
        File folder = folder(segment).toFile();
        File[] files = folder.listFiles();
        if (files != null) Arrays.stream(files).forEach(File::delete);
        folder.delete();
    }

    @Override
    public void close() { }

    private Path folder(RemoteLogSegmentMetadata segment) {
        return root.resolve(segment.remoteLogSegmentId().id().toString());
    }

    private byte[] read(RemoteLogSegmentMetadata segment, String name) throws RemoteStorageException {
        try {
            return Files.readAllBytes(folder(segment).resolve(name));
        } catch (IOException missing) {
            throw new RemoteResourceNotFoundException(missing);
        }
    }
}
