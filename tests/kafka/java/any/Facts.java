import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What a release of Kafka knows, as one line of JSON. Compiles with every release: what is not in all of them at the same
 * place is looked up by name.
 *
 *   "release"  of the jars
 *   "levels"   level of metadata.version to its name, those of production
 *   "features" name to [highest level, the level of metadata.version from which on a new cluster has level 1, 2, …]
 *   "configs"  topic, broker, group, producer, consumer, admin to name to [type, default, valid values]
 *   "errors"   code to [name, class, text, retriable or recoverable or fatal]
 *   "control"  type of control record to its name
 */
public final class Facts {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String[] TOPIC = {"org.apache.kafka.storage.internals.log.LogConfig"};
    static final String[] BROKER = {"org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig"};
    static final String[] GROUP = {"org.apache.kafka.coordinator.group.GroupConfig"};
    static final String[] FEATURE = {"org.apache.kafka.server.common.Feature", "org.apache.kafka.server.common.Features"};
    static final String[] RELEASE = {
        "org.apache.kafka.common.utils.AppInfoParser", "org.apache.kafka.common.utils.internals.AppInfoParser"};

    static final String[] RECOVERABLE = {"org.apache.kafka.common.errors.ApplicationRecoverableException"};
    static final String[] CONTROL = {
        "org.apache.kafka.common.record.internal.ControlRecordType", "org.apache.kafka.common.record.ControlRecordType"};

    private Facts() { }

    public static void main(String[] args) throws Exception {
        ObjectNode facts = JSON.createObjectNode().put("release", (String) first(RELEASE).getMethod("getVersion").invoke(null));
        levels(facts.putObject("levels"));
        features(facts.putObject("features"));
        ObjectNode configs = facts.putObject("configs");
        configs(configs.putObject("topic"), definitions(TOPIC));
        configs(configs.putObject("broker"), definitions(BROKER));
        configs(configs.putObject("group"), definitions(GROUP));
        configs(configs.putObject("producer"), ProducerConfig.configDef());
        configs(configs.putObject("consumer"), ConsumerConfig.configDef());
        configs(configs.putObject("admin"), AdminClientConfig.configDef());
        ObjectNode errors = facts.putObject("errors");
        for (Errors error : Errors.values()) {
            Exception exception = error.exception();
            String name = exception == null ? null : exception.getClass().getName();
            ArrayNode row = errors.putArray(String.valueOf(error.code())).add(error.name()).add(name).add(error.message());
            row.add(exception instanceof RetriableException ? "retriable" : is(exception, RECOVERABLE) ? "recoverable" : "fatal");
        }
        ObjectNode control = facts.putObject("control");
        for (Object type : first(CONTROL).getEnumConstants()) {
            Field code = type.getClass().getDeclaredField("type");
            control.put(String.valueOf(opened(code).get(type)), type.toString());
        }
        System.out.println(JSON.writeValueAsString(facts));
    }

    static boolean is(Object object, String[] names) {
        Class<?> kind = first(names);
        return kind != null && kind.isInstance(object);
    }

    static void levels(ObjectNode levels) {
        for (MetadataVersion version : MetadataVersion.values()) {
            if (version.isProduction() && version.featureLevel() > 0) {
                levels.put(String.valueOf(version.featureLevel()), version.version());
            }
        }
    }

    static void features(ObjectNode features) throws Exception {
        Class<?> kind = first(FEATURE);
        if (kind == null || !kind.isEnum()) return;  // before Kafka 3.9 there is metadata.version alone
        Method byDefault = Arrays.stream(kind.getMethods()).filter(method -> method.getReturnType() == short.class
            && method.getName().startsWith("default") && method.getParameterCount() == 1).findFirst().orElseThrow();
        for (Object feature : (Iterable<?>) kind.getField("PRODUCTION_FEATURES").get(null)) {
            ArrayNode levels = features.putArray((String) call(feature, "featureName"));
            levels.add(((Number) call(feature, "latestProduction")).intValue());
            int reached = 0;
            for (MetadataVersion version : MetadataVersion.values()) {
                if (!version.isProduction() || version.featureLevel() <= 0) continue;
                int level = ((Number) opened(byDefault).invoke(feature, version)).intValue();
                for (; reached < level; reached++) levels.add(version.featureLevel());
            }
        }
    }

    static void configs(ObjectNode node, ConfigDef definitions) {
        if (definitions == null) return;
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            boolean isRequired = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
            ArrayNode facts = node.putArray(key.name).add(String.valueOf(key.type()));
            facts.add(isRequired ? "(required)" : ConfigDef.convertToString(key.defaultValue, key.type()));
            facts.add(key.validator == null ? null : text(key.validator));
        }
    }

    /** A validator without words of its own prints where it lies in memory. */
    static String text(Object validator) {
        return validator.toString().replaceAll("(\\$\\$Lambda)?[/@].*", "");
    }

    /** The definitions that a class has, public or not; null if none of the classes is there. */
    static ConfigDef definitions(String[] names) throws Exception {
        Class<?> kind = first(names);
        if (kind == null) return null;
        for (Method method : kind.getDeclaredMethods()) {
            boolean isAsked = method.getParameterCount() == 0 && ConfigDef.class.isAssignableFrom(method.getReturnType());
            if (isAsked && !method.getName().contains("$")) return (ConfigDef) opened(method).invoke(null);
        }
        for (String name : Arrays.asList("CONFIG_DEF", "CONFIG")) {
            for (Field field : kind.getDeclaredFields()) {
                if (field.getName().equals(name)) return (ConfigDef) opened(field).get(null);
            }
        }
        throw new IllegalStateException("no definitions in " + kind);
    }

    static Class<?> first(String[] names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException absent) {
                // of a later or of an earlier release
            }
        }
        return null;
    }

    static Object call(Object target, String method) throws Exception {
        return opened(target.getClass().getMethod(method)).invoke(target);
    }

    static <T extends AccessibleObject> T opened(T member) {
        member.setAccessible(true);
        return member;
    }
}
