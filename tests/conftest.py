"""What every test shares: how hypothesis searches."""

import os

from hypothesis import settings

pytest_plugins = ["tests.services", "tests.running_site"]

# No deadline for one example: two test processes share the machine with the services they started.
settings.register_profile("default", deadline=None, print_blob=True)
# The same examples on every run, so that a change is judged by what it changes.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
