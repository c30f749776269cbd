import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Every error with a class: code, name, class, kind (R retriable, A application recoverable, -), message; by tabs. */
public class ErrorTable {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            if (error.exception() != null) {
                Exception one = error.exception();
                String kind = one instanceof RetriableException ? "R" : one instanceof ApplicationRecoverableException ? "A" : "-";
                System.out.println(String.join("\t", String.valueOf(error.code()), error.name(), one.getClass().getName(), kind,
                    error.message()));
            }
        }
    }
}
