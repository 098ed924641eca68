import io
import json
import os
import tempfile

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
import django
django.setup()
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from shop.models import Customer, Invoice, Order

BIG = 2**53  # snowflake ids are above this, numbers of a sequence are not


def check(holds, claim, kind="ok"):
    print(f"{kind if holds else 'FAILED'}: {claim}")
    if not holds:
        raise SystemExit(1)


print(f"== Django {django.get_version()}")

call_command("migrate", "shop", "0001", verbosity=0)
Customer.objects.bulk_create(Customer(name=f"old {n}") for n in range(3))
Invoice.objects.create(customer_id=1)
call_command("migrate", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("""SELECT c.id > %s AND c.xmin = e.xmin FROM shop_customer AS c, pg_extension AS e
                      WHERE name = 'migrated' AND extname = 'snowflake_ids'""", [BIG])
    check(cursor.fetchone() == (True,), "CREATE EXTENSION, attach and the first id in one migration of a new server")
ada = Customer.objects.create(name="Ada")
check(ada.pk > BIG and Customer.objects.get(pk=3).name == "old 2", "attach in a migration: create() gives snowflake ids; old rows keep theirs")
check(Invoice.objects.create(customer=ada).pk == 2, "attach with a tag: create() continues above the rows")

with CaptureQueriesContext(connection) as queries:
    orders = Order.objects.bulk_create(Order(customer=ada, note=f"order {n}") for n in range(1000))
inserts = [query for query in queries if "INSERT" in query["sql"]]
check(len(inserts) == 1 and len({order.pk for order in orders}) == 1000, "bulk_create() of 1,000 is one statement and returns the ids")
check(Order.objects.order_by("pk").last().note == "order 999", "ids are in the order of the objects")
check(ada.orders.count() == 1000 and Order.objects.select_related("customer").first().customer == ada, "a foreign key, both ways")

with tempfile.NamedTemporaryFile("w", suffix=".json") as fixture:
    json.dump([{"model": "shop.customer", "pk": 77, "fields": {"name": "fixture"}},
               {"model": "shop.invoice", "pk": 77, "fields": {"customer": 77}},
               {"model": "shop.order", "pk": 77, "fields": {"customer": 77, "note": "fixture"}}], fixture)
    fixture.flush()
    call_command("loaddata", fixture.name, verbosity=0)
check(Order.objects.create(customer_id=77, note="x").pk > BIG, "loaddata with ids of its own; new ids stay snowflakes")
check(Invoice.objects.create(customer_id=77).pk == 78, "ids of a tag continue above the fixture's ids")
call_command("sqlsequencereset", "shop", stdout=(reset := io.StringIO()), no_color=True)
with connection.cursor() as cursor:
    cursor.execute(reset.getvalue())
check(Customer.objects.create(name="x").pk > ada.pk and Invoice.objects.create(customer=ada).pk == 79,
      "the output of sqlsequencereset runs, and ids continue")

call_command("makemigrations", check=True, dry_run=True, verbosity=0)  # exits with 1 if it finds a change
check(True, "makemigrations --check finds nothing to change")

highest = Customer.objects.latest("pk").pk
call_command("migrate", "shop", "0001", verbosity=0)  # this also drops the extension
check(Customer.objects.create(name="x").pk > highest, "the migration reverted: the columns are identities again, above all ids")
highest = Customer.objects.latest("pk").pk
call_command("migrate", verbosity=0)
check(Customer.objects.create(name="x").pk > highest and Invoice.objects.create(customer_id=77).pk > 79,
      "the migration applied again: ids continue above all rows")

tables = [model._meta.db_table for model in (Order, Invoice, Customer)]
connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), tables, reset_sequences=True))
again = Customer.objects.create(name="again")
check(again.pk > BIG and Invoice.objects.create(customer=again).pk == 1, "reset_sequences of a test case restarts the numbers of a tag, but not snowflake ids")


class Trap(models.Model):
    class Meta:
        app_label = "shop"

    id = models.BigIntegerField(primary_key=True, db_default=models.Func(function="snowflake_id"))


with connection.schema_editor() as editor:
    editor.create_model(Trap)
made = Trap.objects.bulk_create([Trap(), Trap()])
check(Trap.objects.count() == 2 and not any(isinstance(trap.pk, int) for trap in made),
      "with db_default on the key, bulk_create() inserts and returns no ids", "trap")

call_command("inspectdb", "shop_customer", Trap._meta.db_table, stdout=(inspected := io.StringIO()))
keys = [line.split()[2] for line in inspected.getvalue().splitlines() if line.startswith("    id = ")]
check(keys == ["models.BigAutoField(primary_key=True)", "models.BigIntegerField(primary_key=True)"],
      "inspectdb takes snowflake_nextval() for a BigAutoField, and snowflake_id() for a BigIntegerField")
