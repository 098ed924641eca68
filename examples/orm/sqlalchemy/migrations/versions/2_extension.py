from alembic import op

revision, down_revision = "2", "1"


def upgrade():
    op.execute("CREATE EXTENSION IF NOT EXISTS snowflake_ids")


def downgrade():
    op.execute("DROP EXTENSION snowflake_ids")
