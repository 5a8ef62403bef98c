"""Fixtures of the data plane's tests: the whole web application, in the test's own process."""

from tests.integration.control_plane.conftest import sell
from tests.integration.control_plane.own_parts import client, database_url, parts

__all__ = ["client", "database_url", "parts", "sell"]
