"""What a browser test needs to know of the Fairdrop that runs for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LiveSite:
    """A running Fairdrop with an open sale that has units left and lets people in quickly."""

    base_url: str
    sale_slug: str
    admin_key: str
