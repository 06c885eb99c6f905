"""Which plug-ins every test may use; a fixture lives in the `fix_*.py` of its subject."""

from hypothesis import settings

pytest_plugins = ("tests.fix_database", "tests.fix_smallnet", "tests.fix_lane")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")  # no test fails because its machine is busy
