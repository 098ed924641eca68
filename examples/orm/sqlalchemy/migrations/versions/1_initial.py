import sqlalchemy as sa
from alembic import op

revision, down_revision = "1", None


def upgrade():  # the tables before the extension
    op.create_table("customer", sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("name", sa.Text, nullable=False))
    op.create_table("invoice", sa.Column("id", sa.BigInteger, primary_key=True),
                    sa.Column("customer_id", sa.BigInteger, sa.ForeignKey("customer.id"), nullable=False))
    op.execute("INSERT INTO customer (name) VALUES ('old 0'), ('old 1'), ('old 2')")
    op.execute("INSERT INTO invoice (customer_id) VALUES (1)")
