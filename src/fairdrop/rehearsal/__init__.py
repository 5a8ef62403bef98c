"""Rehearsals: a simulated crowd buys out a sale through the public HTTP API (S8)."""
