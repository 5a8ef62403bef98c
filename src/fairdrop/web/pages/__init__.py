"""The pages of Fairdrop: skeletons that are the same for everybody, filled from the JSON API.

No page carries anything about a person, so any cache may keep it (S9). What a page shows comes
from the public document, which is the same for everyone too, and from the few personal calls that
the scripts under ``static/js`` make.
"""

from .routes import Shop, routes

__all__ = ["Shop", "routes"]
