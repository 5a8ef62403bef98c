"""Connections to the parts outside this process: the store (Valkey) and the database (PostgreSQL)."""
