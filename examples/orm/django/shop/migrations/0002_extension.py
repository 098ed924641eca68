from django.contrib.postgres.operations import CreateExtension
from django.db import migrations


class Migration(migrations.Migration):  # of its own: a new server gives snowflake ids once this is committed
    dependencies = [("shop", "0001_initial")]
    operations = [CreateExtension("snowflake_ids")]
