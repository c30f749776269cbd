import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads messages with Kafka's generated classes and writes them again. A line on stdin: class, read version, write
 * version, hex. A line on stdout: hex, or the exception of the write.
 */
public class Rewrites {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
            Message message = (Message) Class.forName(words[0]).getConstructor(Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(data), Short.parseShort(words[1]));
            out.append(rewritten(message, Short.parseShort(words[2]))).append('\n');
        }
        System.out.print(out);
    }

    static String rewritten(Message message, short version) {
        try {
            ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return HexFormat.of().formatHex(bytes);
        } catch (RuntimeException refused) {
            return refused.getClass().getName() + ": " + refused.getMessage();
        }
    }
}
