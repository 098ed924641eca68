"""The first migration, in a database with new_columns = snowflake."""
import os
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
import django
django.setup()
from django.core.management import call_command
from shop.models import Customer

call_command("migrate", "shop", "0001", verbosity=0)
made = Customer.objects.bulk_create(Customer(name=f"customer {n}") for n in range(1000))
call_command("makemigrations", check=True, dry_run=True, verbosity=0)  # exits with 1 if it finds a change
print("ok: new_columns = 'snowflake': the first migration, as makemigrations wrote it, gives ids; makemigrations --check finds nothing")
with open(sys.argv[1], "w") as ids:
    ids.writelines(f"{customer.pk}\n" for customer in made)
