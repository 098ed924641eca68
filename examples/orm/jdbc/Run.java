import java.sql.*;
import java.util.ArrayList;
import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.simple.SimpleJdbcInsert;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import java.util.Map;

/** JDBC and Spring JDBC, each with its own inserts into the tables of shop.sql. */
public class Run {
    static final long BIG = 1L << 53; // snowflake ids are above this, numbers of a tag are not

    static void check(boolean holds, String claim) {
        System.out.println((holds ? "ok: " : "FAILED: ") + claim);
        if (!holds) System.exit(1);
    }

    static boolean areNew(List<Long> ids, int count) {
        long last = BIG;
        for (long id : ids) {
            if (id <= last) return false;
            last = id;
        }
        return ids.size() == count;
    }

    static List<Long> keys(Statement statement) throws SQLException {
        List<Long> keys = new ArrayList<>();
        try (ResultSet rows = statement.getGeneratedKeys()) {
            while (rows.next()) keys.add(rows.getLong("id"));
        }
        return keys;
    }

    static String isAutoincrement(Connection db, String table) throws SQLException {
        try (ResultSet columns = db.getMetaData().getColumns(null, "public", table, "id")) {
            columns.next();
            return columns.getString("IS_AUTOINCREMENT");
        }
    }

    public static void main(String[] versions) throws Exception {
        String url = String.format("jdbc:postgresql://%s:%s/%s", System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"));
        String insert = "INSERT INTO customer (name) VALUES (?)";
        System.out.println("== JDBC " + versions[0]);
        try (Connection db = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            PreparedStatement one = db.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS);
            one.setString(1, "Ada");
            one.executeUpdate();
            long ada = keys(one).get(0);
            check(ada > BIG, "getGeneratedKeys() of RETURN_GENERATED_KEYS");
            PreparedStatement batch = db.prepareStatement(insert, new String[] {"id"});
            for (int n = 0; n < 1000; n++) {
                batch.setString(1, "row " + n);
                batch.addBatch();
            }
            batch.executeBatch();
            check(areNew(keys(batch), 1000), "executeBatch() of 1,000, and their getGeneratedKeys()");
            db.createStatement().execute("CREATE TABLE synonym (id bigint PRIMARY KEY DEFAULT snowflake_id())");
            check(isAutoincrement(db, "customer").equals("YES") && isAutoincrement(db, "synonym").equals("NO"),
                "getColumns() says IS_AUTOINCREMENT, as for a serial, but not for snowflake_id()");

            System.out.println("== Spring JDBC " + versions[1]);
            SingleConnectionDataSource source = new SingleConnectionDataSource(db, true);
            SimpleJdbcInsert invoices = new SimpleJdbcInsert(source).withTableName("invoice").usingColumns("customer_id").usingGeneratedKeyColumns("id");
            check(invoices.executeAndReturnKey(Map.of("customer_id", ada)).longValue() == 2, "SimpleJdbcInsert.executeAndReturnKey(): a number of a tag");
            SimpleJdbcInsert customers = new SimpleJdbcInsert(source).withTableName("customer").usingColumns("name").usingGeneratedKeyColumns("id");
            long key = customers.executeAndReturnKey(Map.of("name", "Ada")).longValue();
            check(key > BIG && new JdbcTemplate(source).queryForObject("SELECT name FROM customer WHERE id = ?", String.class, key).equals("Ada"),
                "a snowflake id finds its row");
        }
    }
}
