import java.nio.file.*;
import java.util.*;
import org.hibernate.*;
import org.hibernate.cfg.Configuration;
import org.hibernate.tool.hbm2ddl.*;

public class Run {
    static final long BIG = 1L << 53; // snowflake ids are above this, numbers of a sequence are not

    static void check(boolean holds, String claim) {
        check(holds, "ok", claim);
    }

    static void check(boolean holds, String kind, String claim) {
        System.out.println((holds ? kind : "FAILED") + ": " + claim);
        if (!holds) System.exit(1);
    }

    static void migrate(SessionFactory factory, String migration) {
        Session session = factory.openSession();
        Transaction transaction = session.beginTransaction();
        session.doWork(connection -> connection.createStatement().execute(migration));
        transaction.commit();
        Object first = session.createSQLQuery("SELECT c.id > " + BIG + " AND c.xmin = e.xmin FROM customer AS c, pg_extension AS e"
            + " WHERE name = 'migrated' AND extname = 'snowflake_ids'").uniqueResult();
        check((Boolean) first, "CREATE EXTENSION, bind_sequence and the first id in one transaction of a new server");
        session.close();
    }

    static Configuration configuration(boolean pooled) {
        Map<String, String> env = System.getenv();
        return new Configuration().addAnnotatedClass(Customer.class).addAnnotatedClass(Order.class)
            .setProperty("hibernate.connection.url",
                "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE"))
            .setProperty("hibernate.connection.username", env.get("PGUSER"))
            .setProperty("hibernate.connection.password", env.get("PGPASSWORD"))
            .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
            .setProperty("hibernate.id.new_generator_mappings", String.valueOf(pooled)); // or hi/lo, the former default
    }

    /** Makes this number of new customers in one transaction; gives their ids. */
    static List<Long> customers(SessionFactory factory, int count) {
        List<Long> ids = new ArrayList<>();
        Session session = factory.openSession();
        Transaction transaction = session.beginTransaction();
        for (int n = 0; n < count; n++) ids.add((Long) session.save(new Customer("customer " + n)));
        transaction.commit();
        session.close();
        return ids;
    }

    static long order(SessionFactory factory, long customer) {
        Session session = factory.openSession();
        Transaction transaction = session.beginTransaction();
        long id = (Long) session.save(new Order((Customer) session.load(Customer.class, customer), "order"));
        transaction.commit();
        session.close();
        return id;
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("== Hibernate " + arguments[0]);
        Configuration configuration = configuration(true);
        new SchemaExport(configuration).create(false, true);

        SessionFactory one = configuration.buildSessionFactory(), two = configuration.buildSessionFactory(); // two applications
        List<Long> before = customers(one, 3);
        order(one, before.get(0));
        one.close();
        migrate(two, Files.readString(Path.of("migration.sql")));
        one = configuration.buildSessionFactory(); // an application keeps the rest of its block: restart it

        long first = customers(one, 1).get(0);
        check(first > BIG, "bind_sequence in a migration: save() gives snowflake ids");
        check(order(one, first) == 2, "attach with a tag: save() continues above the rows, by IDENTITY");

        List<Long> ids = new ArrayList<>();
        Session session = one.openSession();
        for (int n = 0; n < 20; n++) {
            ids.addAll(customers(one, 60));
            ids.addAll(customers(two, 40));
            for (Object id : session.createSQLQuery("SELECT snowflake_nextvals(50)").list()) ids.add(((Number) id).longValue());
        }
        check(new HashSet<>(ids).size() == 3000 && ids.stream().allMatch(id -> id > BIG),
            "2,000 ids of two applications, in blocks of 50, and 1,000 of snowflake_nextvals(): none twice");
        List<?> read = session.createQuery("select o.customer.name from Order o where o.id = 2").list();
        check(read.equals(List.of("customer 0")), "a relation");
        session.close();

        new SchemaValidator(configuration).validate(); // throws if the schema differs
        check(true, "hbm2ddl's validate finds the tables and the sequence");
        one.close();
        two.close();

        SessionFactory asking = configuration(true).setProperty("hibernate.jdbc.use_get_generated_keys", "false").buildSessionFactory();
        check(order(asking, first) == 3 && order(asking, first) == 4, "without generated keys it asks for currval, and gets the id");
        asking.close();

        SessionFactory old = configuration(false).buildSessionFactory();
        long near = ids.get(ids.size() - 1), wrapped = customers(old, 1).get(0);
        check(Math.abs(wrapped - near) > 1L << 50, "trap", "the old hi/lo generator multiplies, and a snowflake id overflows");
        old.close();
    }
}
