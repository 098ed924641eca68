from tortoise import fields, models


class Customer(models.Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.TextField()

    class Meta:
        table = "customer"
