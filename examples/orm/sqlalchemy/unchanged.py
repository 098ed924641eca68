"""The tables that Alembic makes from models, in a database with new_columns = snowflake."""
import sys

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from models import Base, Customer
from sqlalchemy.orm import Session

engine = sa.create_engine("postgresql+psycopg://")  # libpq's PG* variables give the rest
with engine.begin() as connection:
    context = MigrationContext.configure(connection)
    for operation in produce_migrations(context, Base.metadata).upgrade_ops.ops:
        Operations(context).invoke(operation)
with Session(engine) as session:
    session.add_all(made := [Customer(name=f"customer {n}") for n in range(1000)])
    session.commit()
    with open(sys.argv[1], "w") as ids:
        ids.writelines(f"{customer.id}\n" for customer in made)
with engine.connect() as connection:
    context = MigrationContext.configure(connection, opts={"compare_server_default": True})
    assert compare_metadata(context, Base.metadata) == []
print("ok: new_columns = 'snowflake': tables as autogenerate makes them give ids, and it then finds nothing to change")
