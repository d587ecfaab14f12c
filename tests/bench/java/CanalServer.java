import com.alibaba.otter.canal.connector.kafka.producer.CanalKafkaProducer;
import com.alibaba.otter.canal.instance.core.CanalMQConfig;
import com.alibaba.otter.canal.instance.manager.CanalInstanceWithManager;
import com.alibaba.otter.canal.instance.manager.model.Canal;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter;
import com.alibaba.otter.canal.server.CanalMQStarter;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Properties;

/**
 * Runs one instance of canal that sends to Kafka, like canal.deployer, which is not on Maven Central. The argument is a
 * file of properties, which have the names and the defaults of canal.properties and instance.properties.
 */
public class CanalServer {
    private static final String INSTANCE = "example";

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        CanalMQConfig target = new CanalMQConfig();
        target.setTopic(settings.getProperty("canal.mq.topic"));
        target.setPartition(0);
        Canal canal = new Canal();
        canal.setId(1L);
        canal.setName(INSTANCE);
        canal.setCanalParameter(parameters(settings));
        CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
        server.setCanalInstanceGenerator(name -> new Instance(canal, settings.getProperty("canal.instance.filter.regex"), target));
        server.start();
        server.start(INSTANCE);
        CanalKafkaProducer producer = new CanalKafkaProducer();
        producer.init(settings);
        new CanalMQStarter(producer).start(INSTANCE);
        Thread.currentThread().join();
    }

    private static CanalParameter parameters(Properties settings) {
        String[] address = settings.getProperty("canal.instance.master.address").split(":");
        CanalParameter parameters = new CanalParameter();
        parameters.setGroupDbAddresses(List.of(List.of(new CanalParameter.DataSourcing(
            CanalParameter.SourcingType.MYSQL, new InetSocketAddress(address[0], Integer.parseInt(address[1]))))));
        parameters.setDbUsername(settings.getProperty("canal.instance.dbUsername"));
        parameters.setDbPassword(settings.getProperty("canal.instance.dbPassword"));
        parameters.setDefaultDatabaseName("");
        parameters.setSlaveId(Long.parseLong(settings.getProperty("canal.instance.mysql.slaveId")));
        parameters.setPositions(List.of(String.format("{\"journalName\":\"%s\",\"position\":%s}",
            settings.getProperty("canal.instance.master.journal.name"), settings.getProperty("canal.instance.master.position"))));
        // Positions in memory, no history of table structures: both would need further servers or files.
        parameters.setMetaMode(CanalParameter.MetaMode.MEMORY);
        parameters.setIndexMode(CanalParameter.IndexMode.MEMORY_META_FAILBACK);
        parameters.setTsdbEnable(false);
        parameters.setDetectingEnable(false);
        parameters.setHeartbeatHaEnable(false);
        parameters.setGtidEnable(false);
        parameters.setMultiStreamEnable(false);
        parameters.setParallel(true);
        // The deployer sets this, too, when the target is a message queue: entries are then not parsed twice.
        parameters.setMemoryStorageRawEntry(false);
        return parameters;
    }

    private static class Instance extends CanalInstanceWithManager {
        Instance(Canal canal, String filter, CanalMQConfig target) {
            super(canal, filter);
            mqConfig = target;
        }
    }
}
