import sqlalchemy as sa
from alembic import op

revision, down_revision = "2", "1"


def upgrade():
    op.execute("CREATE EXTENSION snowflake_ids")
    # The new table is made with a serial column, as in the model, and attached at once.
    op.create_table("order", sa.Column("id", sa.BigInteger, primary_key=True),
                    sa.Column("customer_id", sa.BigInteger, sa.ForeignKey("customer.id"), nullable=False),
                    sa.Column("note", sa.Text, nullable=False))
    op.execute("""SELECT snowflake_ids.attach('"order"', 'id')""")
    op.execute("SELECT snowflake_ids.attach('customer', 'id')")
    op.execute("SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices')")
    op.execute("INSERT INTO customer (name) VALUES ('migrated')")  # the extension gives ids from here on, in this transaction


def downgrade():
    op.drop_table("order")
    op.execute("SELECT snowflake_ids.detach('customer', 'id')")
    op.execute("SELECT snowflake_ids.detach('invoice', 'id')")
    op.execute("DROP EXTENSION snowflake_ids")
