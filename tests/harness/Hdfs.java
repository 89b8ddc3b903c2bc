import java.io.File;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HDFS in a folder, with one datanode and leases that are taken back after a second: prints its address.
 * Or, given the address of a file too, a client that writes it, and has not closed it.
 */
public class Hdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        if (arguments.length == 2) {
            FileSystem.get(URI.create(arguments[1]), settings).create(new Path(arguments[1]), false);
            System.out.println("held");
            System.in.read();
            return;
        }
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(settings, new File(arguments[0]));
        try (MiniDFSCluster cluster = builder.numDataNodes(1).build()) {
            cluster.waitActive();
            cluster.setLeasePeriod(1000, 3600000);
            System.out.println(cluster.getURI());
            System.in.read();
        }
    }
}
