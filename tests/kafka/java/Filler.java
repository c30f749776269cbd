import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Fills generated messages with values, as far as a version of their schema can carry them. */
final class Filler {
    private static final String[] TEXTS = {
        "", "text", "ü€😀", "quote\" back\\ slash/ \t\n\r\b\f\u0001\u001f\u007f\u2028 <&>", "longer ".repeat(10),
    };
    private static final int UNKNOWN_TAG = 10_000;
    private static final int ATTEMPTS = 3;

    private final Random random = new Random(431);

    /** The message with its defaults, filled (twice), with all nulls it allows, and with an unknown tagged field. */
    <T extends Message> List<ApiMessage> variants(Class<T> type, short version) throws Exception {
        List<ApiMessage> messages = new ArrayList<>();
        messages.add((ApiMessage) filled(type, version, false, 0));
        messages.add((ApiMessage) filled(type, version, false, 2));
        messages.add((ApiMessage) filled(type, version, false, 2));
        messages.add((ApiMessage) filled(type, version, true, 2));
        Message tagged = filled(type, version, false, 1);
        tagged.unknownTaggedFields().add(new RawTaggedField(UNKNOWN_TAG, new byte[] {1, 2, 3}));
        if (fits(tagged, version)) messages.add((ApiMessage) tagged);
        messages.removeIf(message -> !fits(message, version));
        return messages;
    }

    static boolean fits(Message message, short version) {
        try {
            MessageUtil.toByteBufferAccessor(message, version);
            return true;
        } catch (RuntimeException unsupported) {
            return false;
        }
    }

    private Message filled(Class<?> type, short version, boolean nulls, int count) throws Exception {
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        if (count == 0) return message;
        Method[] setters = type.getMethods();
        Arrays.sort(setters, Comparator.comparing(Method::getName));
        for (Method setter : setters) {
            if (!setter.getName().startsWith("set") || setter.getReturnType() != type) continue;
            Type parameter = setter.getGenericParameterTypes()[0];
            Object before = getter(type, setter).invoke(message);
            boolean isNull = nulls && !setter.getParameterTypes()[0].isPrimitive();
            if (isNull && accepts(message, version, setter, null)) continue;
            boolean accepted = false;
            for (int attempt = 0; attempt < ATTEMPTS && !accepted; attempt++)
                accepted = accepts(message, version, setter, value(parameter, version, nulls, count));
            if (!accepted) setter.invoke(message, before);
        }
        return message;
    }

    private static boolean accepts(Message message, short version, Method setter, Object value) throws Exception {
        try {
            setter.invoke(message, value);
        } catch (InvocationTargetException outOfRange) {
            return false;
        }
        return fits(message, version);
    }

    private static Method getter(Class<?> type, Method setter) throws NoSuchMethodException {
        String name = setter.getName().substring(3);
        return type.getMethod(Character.toLowerCase(name.charAt(0)) + name.substring(1));
    }

    private Object value(Type type, short version, boolean nulls, int count) throws Exception {
        if (type instanceof ParameterizedType list) {
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < count; i++) items.add(value(list.getActualTypeArguments()[0], version, nulls, count));
            return items;
        }
        Class<?> plain = (Class<?>) type;
        if (Message.class.isAssignableFrom(plain)) return filled(plain, version, nulls, count);
        if (Collection.class.isAssignableFrom(plain)) return collection(plain, version, nulls, count);
        return scalar(plain);
    }

    @SuppressWarnings("unchecked")
    private Object collection(Class<?> type, short version, boolean nulls, int count) throws Exception {
        Collection<Object> collection = (Collection<Object>) type.getDeclaredConstructor().newInstance();
        Type item = ((ParameterizedType) type.getGenericSuperclass()).getActualTypeArguments()[0];
        for (int i = 0; i < count; i++) collection.add(value(item, version, nulls, count));
        return collection;
    }

    private Object scalar(Class<?> type) {
        int small = random.nextInt(4);
        if (type == boolean.class || type == Boolean.class) return small < 2;
        if (type == byte.class || type == Byte.class) return (byte) small;
        if (type == short.class || type == Short.class) return (short) (small == 0 ? -1 : random.nextInt(300));
        if (type == int.class || type == Integer.class) return small == 0 ? -1 : random.nextInt(40_000);
        if (type == long.class || type == Long.class) return small == 0 ? random.nextLong() : random.nextInt(1_000_000);
        if (type == double.class || type == Double.class) return decimal();
        if (type == String.class) return TEXTS[random.nextInt(TEXTS.length)];
        if (type == Uuid.class) return new Uuid(random.nextLong(), random.nextLong());
        if (type == byte[].class) return bytes();
        if (type == ByteBuffer.class) return ByteBuffer.wrap(bytes());
        throw new IllegalArgumentException("no value for " + type);
    }

    private double decimal() {
        double[] values = {0.0, -0.0, 1.0, 0.1, 1e7, 1.0E-5, 1e21, Double.MAX_VALUE, Double.MIN_VALUE, 1234567.875,
            random.nextDouble(), random.nextGaussian() * 1e12, Double.NaN, Double.NEGATIVE_INFINITY};
        return values[random.nextInt(values.length)];
    }

    private byte[] bytes() {
        byte[] bytes = new byte[random.nextInt(9)];
        random.nextBytes(bytes);
        return bytes;
    }
}
