"""What all tests share."""

from hypothesis import settings

pytest_plugins = ["tests.services"]

# A test never judges by the clock: on a busy machine an example may take long.
settings.register_profile("strandline", deadline=None)
settings.load_profile("strandline")
