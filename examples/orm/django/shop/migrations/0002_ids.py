from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models
from shop.models import SnowflakeField


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        CreateExtension("snowflake_ids"),
        # The existing tables. Their models do not change.
        migrations.RunSQL("SELECT snowflake_ids.attach('shop_customer', 'id')",
                          "SELECT snowflake_ids.detach('shop_customer', 'id', kind => 'identity')"),
        migrations.RunSQL("SELECT snowflake_ids.attach('shop_invoice', 'id', kind => 'segment', tag => 'invoices')",
                          "SELECT snowflake_ids.detach('shop_invoice', 'id', kind => 'identity')"),
        # The extension gives ids from here on, in this transaction.
        migrations.RunSQL("INSERT INTO shop_customer (name) VALUES ('migrated')", migrations.RunSQL.noop),
        # A new table.
        migrations.CreateModel("Order", [
            ("id", SnowflakeField(primary_key=True, serialize=False)),
            ("customer", models.ForeignKey(on_delete=models.CASCADE, related_name="orders", to="shop.customer")),
            ("note", models.TextField()),
        ]),
    ]
