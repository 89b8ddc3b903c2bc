import java.io.File;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A Hive metastore with its database in the folder "catalog". Before the first start it makes its tables of locks, as
 * Hive's schematool makes them elsewhere. */
public class HiveMetastore {
    public static void main(String[] options) throws Throwable {
        if (!new File("catalog").exists()) {
            TxnDbUtil.prepDb(new HiveConf());
        }
        HiveMetaStore.main(options);
    }
}
