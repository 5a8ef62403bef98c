"""The catalogue: sales, what they sell, and how they are steered (SPEC W17, H9)."""

from .model import NewSale, NewVariant, Sale, Variant
from .records import CHANGEABLE
from .service import STEERING, Catalog, CreateOutcome, Steer

__all__ = [
    "CHANGEABLE",
    "STEERING",
    "Catalog",
    "CreateOutcome",
    "NewSale",
    "NewVariant",
    "Sale",
    "Steer",
    "Variant",
]
