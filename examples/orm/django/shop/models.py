from django.db import models


class SnowflakeField(models.BigAutoField):
    """A key with the extension's default, for new tables. Django treats this key like its own keys, and leaves it out of INSERT."""

    def db_type_suffix(self, connection):
        return "DEFAULT snowflake_id()"


class Customer(models.Model):  # existed before the extension, and does not change
    name = models.TextField()


class Invoice(models.Model):  # existed before, too
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)


class Order(models.Model):  # new
    id = SnowflakeField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    note = models.TextField()
