from django.db import models


class SnowflakeField(models.BigAutoField):
    """A key with our default, for new tables. Django still takes it for its own, and leaves it out of INSERT."""

    def db_type_suffix(self, connection):
        return "DEFAULT snowflake_id()"


class Customer(models.Model):  # was there before the extension, and stays as it is
    name = models.TextField()


class Invoice(models.Model):  # was there, too
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)


class Order(models.Model):  # new
    id = SnowflakeField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    note = models.TextField()
