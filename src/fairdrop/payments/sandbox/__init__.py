"""The sandbox gateway: a real HTTP server with books of its own, and no real money."""
