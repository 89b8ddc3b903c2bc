import org.flywaydb.core.Flyway;

/** Applies the migrations of a folder: URL, user, password, folder. */
public class Migrate {
    public static void main(String[] words) {
        Flyway.configure().dataSource(words[0], words[1], words[2]).locations("filesystem:" + words[3]).load().migrate();
    }
}
