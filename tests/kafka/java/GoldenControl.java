import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.SimpleRecord;

/** GoldenControl DIRECTORY: control records of every type and version, unknown and broken ones, snapshots by name. */
public final class GoldenControl {
    private final Path directory;
    private final Filler filler = new Filler();

    private GoldenControl(Path directory) {
        this.directory = directory;
    }

    public static void main(String[] args) throws Exception {
        GoldenControl golden = new GoldenControl(Path.of(args[0]));
        golden.kraft();
        golden.markers();
        golden.unknown();
        golden.broken();
        golden.snapshots();
    }

    private void kraft() throws Exception {
        LogFile log = new LogFile();
        for (short version = 0; version <= 1; version++) {
            for (ApiMessage message : variants(new LeaderChangeMessage(), version)) {
                ((LeaderChangeMessage) message).setVersion(version);
                ByteBuffer value = MessageUtil.toByteBufferAccessor(message, version).buffer();
                log.addControl(new SimpleRecord(LogFile.SOME_TIME, ControlRecordType.LEADER_CHANGE.recordKey(), value));
            }
        }
        for (ApiMessage message : variants(new SnapshotHeaderRecord(), (short) 0)) {
            MemoryRecordsBuilder builder = log.control();
            builder.appendSnapshotHeaderMessage(LogFile.SOME_TIME, ((SnapshotHeaderRecord) message).setVersion((short) 0));
            builder.appendSnapshotFooterMessage(LogFile.SOME_TIME + 1, new SnapshotFooterRecord());
            log.add(builder.build(), 2);
        }
        for (ApiMessage message : variants(new KRaftVersionRecord(), (short) 0)) {
            MemoryRecordsBuilder builder = log.control();
            builder.appendKRaftVersionMessage(LogFile.SOME_TIME, ((KRaftVersionRecord) message).setVersion((short) 0));
            log.add(builder.build(), 1);
        }
        for (ApiMessage message : variants(new VotersRecord(), (short) 0)) {
            MemoryRecordsBuilder builder = log.control();
            builder.appendVotersMessage(LogFile.SOME_TIME, ((VotersRecord) message).setVersion((short) 0));
            log.add(builder.build(), 1);
        }
        log.write(LogFile.segment(directory, "kraft-0"));
    }

    private void markers() throws Exception {
        LogFile log = new LogFile();
        for (int epoch : new int[] {0, 7, -1, Integer.MAX_VALUE}) {
            for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
                EndTransactionMarker marker = new EndTransactionMarker(type, epoch);
                log.add(MemoryRecords.withEndTransactionMarker(
                    log.nextOffset(), LogFile.SOME_TIME, LogFile.LEADER_EPOCH, 4000, (short) 2, marker), 1);
            }
        }
        log.addControl(control("00000000", "000000000005"), control("00000001", "000000000006"));
        log.addControl(control("00000001", "0001000000080a0b0c"), control("00050001", "00000000000900"));
        log.write(LogFile.segment(directory, "markers-0"));
    }

    private void unknown() throws Exception {
        LogFile log = new LogFile();
        for (String key : List.of("00000007", "0000000700", "00000064", "0000ffff", "00008000", "00077fff", "00000007ff"))
            log.addControl(control(key, "00"), control(key, null));
        log.write(LogFile.segment(directory, "unknown-0"));
    }

    /** Each ends the real tool, so each has a log of its own. */
    private void broken() throws Exception {
        String[][] records = {
            {"", "000000000001"}, {"000000", "000000000001"}, {"ffff0001", "000000000001"}, {null, "000000000001"},
            {"00000001", ""}, {"00000001", null}, {"00000001", "ffff00000001"}, {"00000001", "00000000"},
            {"00000002", ""}, {"00000002", null}, {"00000002", "0000000000010280"}, {"00000002", "000100000001010100"},
            {"00000002", "00000000000102ffffffff0f"}, {"00000002", "000700000001010100"}, {"00000003", "00"},
            {"00000003", "000500000000000000070000"}, {"00000004", null}, {"00000004", "000100ff"}, {"00000005", "0000"},
            {"00000005", "0000000100"}, {"00000006", "00000000"}, {"00000006", "000002"}, {"00000006", "0000028000"},
        };
        for (int i = 0; i < records.length; i++) {
            LogFile log = new LogFile();
            log.addControl(control("00000001", "000000000005"));
            log.addControl(control(records[i][0], records[i][1]));
            log.add(new SimpleRecord(LogFile.SOME_TIME, Clients.bytes("never"), Clients.bytes("reached")));
            log.write(LogFile.segment(directory, "broken-" + i));
        }
    }

    private void snapshots() throws Exception {
        LogFile log = new LogFile();
        MemoryRecordsBuilder head = log.control();
        head.appendSnapshotHeaderMessage(
            LogFile.SOME_TIME, new SnapshotHeaderRecord().setLastContainedLogTimestamp(LogFile.SOME_TIME - 1));
        head.appendKRaftVersionMessage(LogFile.SOME_TIME, new KRaftVersionRecord().setKRaftVersion((short) 1));
        head.appendVotersMessage(LogFile.SOME_TIME, new VotersRecord().setVoters(List.of(
            new VotersRecord.Voter().setVoterId(1).setVoterDirectoryId(new Uuid(0x1234_5678_9abcL, -2L)))));
        log.add(head.build(), 3);
        log.add(new SimpleRecord(LogFile.SOME_TIME, null, new byte[] {1, 12, 0, 0}));
        MemoryRecordsBuilder tail = log.control();
        tail.appendSnapshotFooterMessage(LogFile.SOME_TIME, new SnapshotFooterRecord());
        log.add(tail.build(), 1);
        String[] names = {
            "00000000000000000007-0000000003.checkpoint", "bootstrap.checkpoint", "7-3.checkpoint", "x.checkpoint",
            "00000000000000000007-0000000003.checkpoint.part", "00000000000000000007-0000000003.checkpoint.deleted",
            "00000000000000000007-0000000003-suffix.checkpoint", "99999999999999999999-0000000003.checkpoint",
            "00000000000000000007-9999999999.checkpoint", "00000000000000000007.checkpoint", "7.log", "-7.log", "+7.log",
            "seven.log", "7.8.log", ".log", "99999999999999999999.log", "٧.log", "00000000000000000007.log.deleted",
        };
        for (String name : names) log.write(directory.resolve("names").resolve(name));
        LogFile.write(directory.resolve("names").resolve("noextension"), new byte[] {1, 2, 3});
        LogFile.write(directory.resolve("names").resolve("empty-0").resolve("0.log"), new byte[0]);
    }

    private List<ApiMessage> variants(ApiMessage message, short version) throws Exception {
        return filler.variants(message.getClass(), version);
    }

    private static SimpleRecord control(String key, String value) {
        return new SimpleRecord(LogFile.SOME_TIME, buffer(key), buffer(value));
    }

    private static ByteBuffer buffer(String hex) {
        return hex == null ? null : ByteBuffer.wrap(java.util.HexFormat.of().parseHex(hex));
    }
}
