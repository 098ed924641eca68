DATABASES = {name: {"ENGINE": "django.db.backends.postgresql", "NAME": name} for name in ("default", "other")}  # PG* variables give the rest
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "of tests"
TEST_RUNNER = "outcomes.Runner"
USE_TZ = False
