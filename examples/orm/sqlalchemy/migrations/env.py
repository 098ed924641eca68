from alembic import context
from models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_server_default=True,
    # The extension's tables are in their own schema. Alembic ignores that schema without include_schemas.
)
with context.begin_transaction():
    context.run_migrations()
