"""Drivers and ORMs of Python that need no set-up, each with its own inserts into the tables of shop.sql."""

import asyncio
import json
import os
from importlib.metadata import version
from io import StringIO

URL = os.environ["DATABASE_URL"]
BIG = 2**53  # snowflake ids are above this, numbers of a tag are not
ROWS = [f"row {n}" for n in range(1000)]


def check(holds, claim, kind="ok"):
    print(f"{kind if holds else 'FAILED'}: {claim}")
    if not holds:
        raise SystemExit(1)


def refuses(call, error):
    try:
        call()
    except error:
        return True
    return False


def begin(name, package):
    print(f"== {name} {version(package)}")


def new(ids):
    """Whether these are snowflake ids, in the order of their rows."""
    return all(i > BIG for i in ids) and ids == sorted(set(ids))


def psycopg3():
    import psycopg

    begin("psycopg", "psycopg")
    with psycopg.connect(URL) as db, db.cursor() as cursor:
        cursor.execute("INSERT INTO customer (name) VALUES (%s) RETURNING id", ["Ada"])
        ada = cursor.fetchone()[0]
        cursor.executemany("INSERT INTO customer (name) VALUES (%s) RETURNING id", [[r] for r in ROWS], returning=True)
        ids = [cursor.fetchone()[0]]
        while cursor.nextset():
            ids.append(cursor.fetchone()[0])
        check(ada > BIG and new(ids) and len(ids) == 1000, "execute() and executemany() with RETURNING, also of 1,000")
        with cursor.copy("COPY customer (name) FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row([row])
        check(cursor.execute("SELECT min(id) > %s FROM customer WHERE name = 'row 999'", [ada]).fetchone()[0], "COPY takes ids")


def psycopg2():
    import psycopg2
    from psycopg2.extras import execute_values

    begin("psycopg2", "psycopg2-binary")
    with psycopg2.connect(URL) as db, db.cursor() as cursor:
        insert = "INSERT INTO customer (name) VALUES %s RETURNING id"
        ids = [i for i, in execute_values(cursor, insert, [[r] for r in ROWS], fetch=True)]
        check(new(ids) and len(ids) == 1000, "execute_values() of 1,000 with RETURNING")
        cursor.execute("INSERT INTO invoice (customer_id) VALUES (%s) RETURNING id, lastval()", [ids[0]])
        number, last = cursor.fetchone()
        check(number == last < BIG, "a number of a tag, which lastval() returns, too")


async def asyncpg_():
    import asyncpg

    begin("asyncpg", "asyncpg")
    db = await asyncpg.connect(URL)
    ids = [r["id"] for r in await db.fetchmany("INSERT INTO customer (name) VALUES ($1) RETURNING id", [[r] for r in ROWS])]
    check(new(ids) and len(ids) == 1000, "fetchmany() of 1,000 with RETURNING")
    said = await db.copy_records_to_table("customer", records=[(r,) for r in ROWS], columns=["name"])
    check(said == "COPY 1000", "copy_records_to_table() takes ids")
    await db.close()


def pg8000_():
    import pg8000.native

    begin("pg8000", "pg8000")
    db = pg8000.native.Connection("app", os.environ["PGHOST"], os.environ["PGDATABASE"], int(os.environ["PGPORT"]), os.environ["PGPASSWORD"])
    ids = [db.run("INSERT INTO customer (name) VALUES (:name) RETURNING id", name=r)[0][0] for r in ROWS[:10]]
    check(new(ids), "run() with RETURNING")
    db.close()


def sqlmodel_():
    from sqlalchemy.exc import DataError
    from sqlmodel import BigInteger, Field, Session, SQLModel, create_engine

    class Customer(SQLModel, table=True):
        id: int | None = Field(default=None, primary_key=True)
        name: str

    class Invoice(SQLModel, table=True):
        id: int | None = Field(default=None, primary_key=True)
        customer_id: int = Field(foreign_key="customer.id", sa_type=BigInteger)

    begin("SQLModel", "sqlmodel")
    with Session(create_engine(URL.replace("postgresql:", "postgresql+psycopg:"))) as db:
        made = [Customer(name=r) for r in ROWS]
        db.add_all(made)
        db.flush()
        check(new([c.id for c in made]), "add_all() of 1,000")
        ada = made[0].id
        invoice = Invoice(customer_id=made[0].id)
        db.add(invoice)
        db.commit()
        check(0 < invoice.id < BIG, "a number of a tag, and a relation whose column is sa_type=BigInteger")
        SQLModel.metadata.clear()

        class Narrow(SQLModel, table=True):
            __tablename__ = "invoice"
            id: int | None = Field(default=None, primary_key=True)
            customer_id: int

        db.add(Narrow(customer_id=ada))
        check(refuses(db.flush, DataError), "int without sa_type=BigInteger is sent as an integer, which is too small (22003)", "trap")


def peewee_():
    import peewee

    db = peewee.PostgresqlDatabase(URL)

    class Customer(peewee.Model):
        id = peewee.BigAutoField()
        name = peewee.TextField()

        class Meta:
            database = db

    begin("Peewee", "peewee")
    ids = [row[0] for row in Customer.insert_many([{"name": r} for r in ROWS]).execute()]
    check(Customer.create(name="Ada").id > BIG and new(ids) and len(ids) == 1000, "create(), and insert_many() of 1,000")
    made = [Customer(name=r) for r in ROWS]
    Customer.bulk_create(made)
    check(new([c.id for c in made]), "bulk_create() of 1,000 sets the ids")


def pony_():
    from pony import orm

    begin("Pony", "pony")
    db = orm.Database()

    class Customer(db.Entity):
        _table_ = "customer"
        id = orm.PrimaryKey(int, size=64, auto=True)
        name = orm.Required(str)
        invoices = orm.Set("Invoice")

    class Invoice(db.Entity):
        _table_ = "invoice"
        id = orm.PrimaryKey(int, size=64, auto=True)
        customer = orm.Required(Customer, column="customer_id")

    db.bind(provider="postgres", dsn=URL)
    db.generate_mapping()
    with orm.db_session:
        made = [Customer(name=r) for r in ROWS[:50]]
        orm.flush()
        check(new([c.id for c in made]), "new entities")
        invoice = Invoice(customer=made[0])
        orm.flush()
        check(0 < invoice.id < BIG, "a number of a tag, and a relation")


async def tortoise_():
    from tortoise import Tortoise
    import models

    begin("Tortoise", "tortoise-orm")
    await Tortoise.init(db_url=URL.replace("postgresql:", "asyncpg:"), modules={"models": ["models"]})
    ada = await models.Customer.create(name="Ada")
    await models.Customer.bulk_create([models.Customer(name=r) for r in ROWS])
    check(ada.id > BIG and await models.Customer.filter(id__gt=ada.id).count() == 1000, "create(), and bulk_create() of 1,000, which returns no ids (nor does it with serials)")
    await Tortoise.close_connections()


async def piccolo_():
    from piccolo.columns import BigSerial, Text
    from piccolo.engine.postgres import PostgresEngine
    from piccolo.table import Table

    begin("Piccolo", "piccolo")

    class Customer(Table, tablename="customer", db=PostgresEngine(config={"dsn": URL})):
        id = BigSerial(primary_key=True)
        name = Text()

    ids = [row["id"] for row in await Customer.insert(*[Customer(name=r) for r in ROWS])]
    ada = Customer(name="Ada")
    await ada.save()
    check(ada.id > BIG and new(ids) and len(ids) == 1000, "save(), and insert() of 1,000")


def pandas_():
    import pandas
    import sqlalchemy

    begin("pandas", "pandas")
    engine = sqlalchemy.create_engine(URL.replace("postgresql:", "postgresql+psycopg:"))
    pandas.DataFrame({"name": [f"panda {r}" for r in ROWS]}).to_sql("customer", engine, if_exists="append", index=False)
    ids = pandas.read_sql("SELECT id FROM customer WHERE name LIKE 'panda %%' ORDER BY id", engine)["id"]
    check(str(ids.dtype) == "int64" and new(list(ids)), "to_sql() of 1,000 takes ids, and read_sql() reads them exactly")
    joined = pandas.read_sql("SELECT id FROM customer WHERE name LIKE 'panda %%' UNION ALL SELECT NULL ORDER BY id", engine)["id"]
    check(len(set(joined.dropna())) < 1000, "a column of ids with a NULL becomes float64, which rounds ids: ask for dtype Int64", "trap")
    whole = pandas.read_sql("SELECT id FROM customer WHERE name LIKE 'panda %%' UNION ALL SELECT NULL ORDER BY id", engine, dtype_backend="numpy_nullable")["id"]
    check(str(whole.dtype) == "Int64" and list(whole.dropna()) == list(ids), "with dtype_backend numpy_nullable ids are exact")
    texts = json.dumps([{"id": str(i)} for i in ids])
    check(list(pandas.read_json(StringIO(texts))["id"]) != list(ids), "read_json() makes numbers of ids in strings, and rounds them", "trap")
    check(list(pandas.read_json(StringIO(texts), dtype=False)["id"].map(int)) == list(ids), "with dtype=False it leaves the strings")


psycopg3()
psycopg2()
asyncio.run(asyncpg_())
pg8000_()
sqlmodel_()
peewee_()
pony_()
asyncio.run(tortoise_())
asyncio.run(piccolo_())
pandas_()
