"""The database's schema: ``schema.sql`` is the readable whole, ``migrations/`` leads to it."""
