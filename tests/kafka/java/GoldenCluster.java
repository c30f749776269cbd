import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** GoldenCluster BOOTSTRAP: what an administrator changes, as records of the cluster metadata log. */
public final class GoldenCluster {
    private final Clients clients;
    private final Admin admin;

    private GoldenCluster(String bootstrap) {
        clients = new Clients(bootstrap);
        admin = clients.admin();
    }

    public static void main(String[] args) throws Exception {
        GoldenCluster golden = new GoldenCluster(args[0]);
        golden.topics();
        golden.configs();
        golden.quotas();
        golden.credentials();
        golden.acls();
        golden.features();
        Clients.vanish();
    }

    private void topics() throws Exception {
        Clients.createTopic(admin, "kept", 2, "cleanup.policy=compact,delete", "retention.ms=60000");
        Clients.createTopic(admin, "short-lived", 1);
        admin.createPartitions(Map.of("kept", NewPartitions.increaseTo(3))).all().get();
        admin.deleteTopics(List.of("short-lived")).all().get();
        try (var producer = clients.transactionalProducer("takes-a-block-of-ids")) {
            producer.beginTransaction();
            Clients.sendBatch(producer, Clients.record("kept", 0, "k", "v"));
            producer.commitTransaction();
        }
    }

    private void configs() throws Exception {
        alter(ConfigResource.Type.TOPIC, "kept", "retention.ms", "70000");
        alter(ConfigResource.Type.TOPIC, "kept", "retention.ms", null);
        alter(ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "1");
        alter(ConfigResource.Type.BROKER, "", "message.max.bytes", "1000012");
        alter(ConfigResource.Type.GROUP, "some-group", "consumer.session.timeout.ms", "50000");
        alter(ConfigResource.Type.CLIENT_METRICS, "sampled", "interval.ms", "10000");
    }

    private void alter(ConfigResource.Type type, String name, String key, String value) throws Exception {
        AlterConfigOp.OpType operation = value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET;
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name),
            List.of(new AlterConfigOp(new ConfigEntry(key, value), operation)))).all().get();
    }

    private void quotas() throws Exception {
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of("user", "jürgen", "client-id", "app"));
        ClientQuotaEntity anyone = new ClientQuotaEntity(java.util.Collections.singletonMap("client-id", null));
        for (Double limit : new Double[] {1024.0, 0.5, 12345678.9, 1.0E-5, null})
            admin.alterClientQuotas(List.of(
                new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("controller_mutation_rate", limit))),
                new ClientQuotaAlteration(anyone, List.of(new ClientQuotaAlteration.Op("request_percentage", limit)))
            )).all().get();
    }

    private void credentials() throws Exception {
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion(
                "alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), Clients.bytes("secret"), Clients.bytes("salt")),
            new UserScramCredentialUpsertion(
                "bob", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), Clients.bytes("hush"), Clients.bytes("salt"))
        )).all().get();
        admin.alterUserScramCredentials(
            List.of(new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512))).all().get();
    }

    private void acls() throws Exception {
        List<AclBinding> bindings = List.of(
            acl(ResourceType.TOPIC, "kept", PatternType.LITERAL, AclOperation.READ, AclPermissionType.ALLOW),
            acl(ResourceType.GROUP, "app-", PatternType.PREFIXED, AclOperation.ALL, AclPermissionType.DENY));
        admin.createAcls(bindings).all().get();
        admin.deleteAcls(List.of(bindings.get(1).toFilter())).all().get();
    }

    private static AclBinding acl(
            ResourceType type, String name, PatternType pattern, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(type, name, pattern),
            new AccessControlEntry("User:alice", "*", operation, permission));
    }

    private void features() throws Exception {
        for (short level : new short[] {1, 2})
            admin.updateFeatures(Map.of("transaction.version",
                new FeatureUpdate(level, level == 1 ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE)),
                new org.apache.kafka.clients.admin.UpdateFeaturesOptions()).all().get();
    }
}
