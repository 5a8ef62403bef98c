"""Fairdrop: a self-hosted engine for flash sales and ticket drops."""

__version__ = "0.1.0"
