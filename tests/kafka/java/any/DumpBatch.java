import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs the real DumpLogSegments.main many times in one JVM, in the working directory of this process.
 *
 * stdin: one JSON array of arguments a line; stdout: {"argv", "rc", "stdout", "stderr"} a line, in the same order.
 * An uncaught exception ends a case as it would end the tool: its first line on stderr, exit code 1.
 */
public final class DumpBatch {
    private static final int CASES_PER_COLLECTION = 200;

    private static final class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    private static Method tool;

    public static void main(String[] unused) throws Exception {
        tool = first("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments").getMethod("main", String[].class);
        leaveByException();
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = System.out;
        PrintStream complaints = System.err;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int cases = 0;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            Map<String, Object> answer = dump(json.readValue(line, String[].class));
            System.setOut(answers);
            System.setErr(complaints);
            answers.write(json.writeValueAsBytes(answer));
            answers.write('\n');
            answers.flush();
            // the tool leaves its file mappings to the garbage collector
            if (++cases % CASES_PER_COLLECTION == 0) System.gc();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Kafka's `Exit` moved between releases. */
    private static void leaveByException() throws ReflectiveOperationException {
        Class<?> exit = first("org.apache.kafka.common.utils.internals.Exit", "org.apache.kafka.common.utils.Exit");
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object leave = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (proxy, method, arguments) -> {
            throw new Exited((int) arguments[0]);
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, leave);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, leave);
    }

    private static Class<?> first(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException absent) {
                // of a later or of an earlier release
            }
        }
        throw new ClassNotFoundException(String.join(" or ", names));
    }

    private static Map<String, Object> dump(String[] argv) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        int code = 0;
        try {
            tool.invoke(null, (Object) argv);
        } catch (InvocationTargetException ended) {
            code = ended.getCause() instanceof Exited exited ? exited.code : 1;
            if (!(ended.getCause() instanceof Exited)) {
                System.err.println("Exception in thread \"main\" " + ended.getCause());
            }
        } catch (IllegalAccessException hidden) {
            throw new IllegalStateException(hidden);
        }
        System.out.flush();
        System.err.flush();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("argv", argv);
        answer.put("rc", code);
        answer.put("stdout", out.toString(StandardCharsets.UTF_8));
        answer.put("stderr", err.toString(StandardCharsets.UTF_8));
        return answer;
    }
}
