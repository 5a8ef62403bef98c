"""Fixtures of the drivers' tests."""

from tests.integration.control_plane.own_parts import database_url, parts

__all__ = ["database_url", "parts"]
