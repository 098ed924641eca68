import alembic
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from models import Base, Customer, Invoice, Order
from sqlalchemy.orm import Session

BIG = 2**53  # snowflake ids are above this, numbers of a sequence are not


def check(holds, claim, kind="ok"):
    print(f"{kind if holds else 'FAILED'}: {claim}")
    if not holds:
        raise SystemExit(1)


print(f"== SQLAlchemy {sa.__version__} with Alembic {alembic.__version__}")
engine = sa.create_engine("postgresql+psycopg://")  # libpq's PG* variables give the rest
inserts = []


@sa.event.listens_for(engine, "before_cursor_execute")
def count(connection, cursor, statement, parameters, context, executemany):
    if statement.startswith("INSERT"):
        inserts.append(statement)


def migrate(direction, revision):
    with engine.connect() as connection:
        config = Config()
        config.set_main_option("script_location", "migrations")
        config.attributes["connection"] = connection
        direction(config, revision)


def differences(metadata, **options):
    with engine.connect() as connection:
        options["compare_server_default"] = True
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


migrate(command.upgrade, "head")  # all in one transaction
with engine.connect() as connection:
    check(connection.scalar(sa.text("""SELECT c.id > :big AND c.xmin = e.xmin AND old.xmin = e.xmin
                                       FROM customer AS c, customer AS old, pg_extension AS e
                                       WHERE c.name = 'migrated' AND old.id = 3 AND extname = 'snowflake_ids'"""), {"big": BIG}),
          "all migrations in one transaction of a new server, from CREATE EXTENSION and attach to the first id")

with Session(engine) as session:
    ada = Customer(name="Ada")
    session.add(ada)
    session.flush()
    check(ada.id > BIG and session.get(Customer, 3).name == "old 2", "attach in a migration: add() gives snowflake ids; old rows keep theirs")
    invoice = Invoice(customer_id=ada.id)
    session.add(invoice)
    session.flush()
    check(invoice.id == 2, "attach with a tag: add() continues above the rows")

    inserts.clear()
    ada.orders = [Order(note=f"order {n}") for n in range(1000)]
    session.commit()
    check(len(inserts) == 1 and len({order.id for order in ada.orders}) == 1000,
          "a relation of 1,000 is inserted by one statement, with ids")
    check([o.note for o in session.scalars(sa.select(Order).order_by(Order.id))] == [f"order {n}" for n in range(1000)],
          "ids are in the order of the objects")
    inserts.clear()
    ids = session.scalars(sa.insert(Order).returning(Order.id), [{"customer_id": ada.id, "note": "x"}] * 1000).all()
    check(len(inserts) == 1 and len(set(ids)) == 1000, "insert().returning() of 1,000 is one statement")

    # A fixture that contains ids.
    session.execute(sa.insert(Order), [{"id": 77, "customer_id": 1, "note": "fixture"}])
    session.add(new := Order(customer_id=1, note="after the fixture"))
    session.commit()
    check(new.id > BIG, "a fixture with ids of its own; new ids stay snowflakes")

    session.execute(sa.insert(Invoice), [{"id": 77, "customer_id": 1}])
    session.execute(sa.text("SELECT setval('invoice_id_seq', 77)"))
    session.add(invoice := Invoice(customer_id=1))
    session.flush()
    check(invoice.id == 78, "after setval on the sequence, ids of a tag continue above the fixture's ids")
    check(session.scalar(sa.Sequence("customer_id_seq")) > BIG, "Sequence() gives ids of the attached column")
    session.commit()

check(differences(Base.metadata) == [], "Alembic's autogenerate finds nothing to change, defaults compared")

with engine.connect() as connection:
    highest = connection.scalar(sa.func.max(Customer.id))
migrate(command.downgrade, "1")  # this also drops the extension
with Session(engine) as session:
    session.add(back := Customer(name="back"))
    session.flush()
    check(back.id > highest, "the migration reverted: the columns are serials again, above all ids")


# The traps, in tables beside the application's.
def alone(name, default):
    return sa.Table(name, sa.MetaData(), sa.Column("id", sa.BigInteger, primary_key=True, server_default=sa.text(default)))


def only(name):
    return {"include_object": lambda object, found, type, reflected, other: type != "table" or found == name}


with engine.begin() as connection:
    connection.execute(sa.text("CREATE EXTENSION snowflake_ids"))
    connection.execute(sa.text("SELECT snowflake_ids.segment_create('trap')"))
    for table in (slow := alone("slow", "snowflake_id()"), bare := alone("bare", "segment_id('trap')")):
        table.create(connection)
    inserts.clear()
    connection.execute(sa.insert(slow).returning(slow.c.id, sort_by_parameter_order=True), [{}] * 100)
    check(len(inserts) == 100, "with server_default on the key, ordered inserts of 100 (as by the ORM) are 100 statements", "trap")

next_of_tag = sa.text("SELECT segment_id('trap')")
with engine.begin() as connection:
    before = connection.scalar(next_of_tag)
check(len(differences(bare.metadata, **only("bare"))) == 1, "segment_id('trap') in a model differs for Alembic each time", "trap")
with engine.begin() as connection:
    check(connection.scalar(next_of_tag) == before + 3, "to compare, Alembic executes both defaults, which takes two numbers", "trap")
spelt = alone("bare", "segment_id('trap'::text)")
check(differences(spelt.metadata, **only("bare")) == [], "segment_id('trap'::text), the form that Postgres shows, does not differ")

with engine.begin() as connection:
    connection.execute(sa.text("CREATE SCHEMA sales"))
    for name in "segment_nextval", "segment_id":
        connection.execute(sa.text(f"CREATE TABLE sales.{name} (id bigint PRIMARY KEY DEFAULT {name}('trap'))"))

def identified():
    table = sa.Table("bare", sa.MetaData(), sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True))
    try:
        return differences(table.metadata, **only("bare"))
    except AssertionError:
        return None


check(identified() is None, "Identity() on a key whose default is a function: autogenerate ends with an AssertionError", "trap")

(read := sa.MetaData()).reflect(engine, schema="sales")
reflected = {table.name: str(table.c.id.server_default.arg) for table in read.tables.values()}
check(reflected["segment_nextval"] == """nextval('"sales".trap'::text)""",
      "reflection takes segment_nextval('trap') of another schema for the sequence sales.trap", "trap")
check(reflected["segment_id"] == "segment_id('trap'::text)", "reflection leaves segment_id('trap') as it is")
