from django.db import migrations, models
from shop.models import SnowflakeField


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_extension")]
    operations = [
        # The tables that are there. Their models do not change.
        migrations.RunSQL("SELECT snowflake_ids.attach('shop_customer', 'id')",
                          "SELECT snowflake_ids.detach('shop_customer', 'id', kind => 'identity')"),
        migrations.RunSQL("SELECT snowflake_ids.attach('shop_invoice', 'id', kind => 'segment', tag => 'invoices')",
                          "SELECT snowflake_ids.detach('shop_invoice', 'id', kind => 'identity')"),
        # A new table.
        migrations.CreateModel("Order", [
            ("id", SnowflakeField(primary_key=True, serialize=False)),
            ("customer", models.ForeignKey(on_delete=models.CASCADE, related_name="orders", to="shop.customer")),
            ("note", models.TextField()),
        ]),
    ]
