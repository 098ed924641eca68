import os

INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}}  # PG* variables give the rest
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
