from django.db import migrations, models


class Migration(migrations.Migration):  # as `makemigrations` wrote it, long ago
    operations = [
        migrations.CreateModel("Customer", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.TextField()),
        ]),
        migrations.CreateModel("Invoice", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("customer", models.ForeignKey(on_delete=models.CASCADE, to="shop.customer")),
        ]),
    ]
