"""The operations of the data plane and of the process, one entry each."""

from __future__ import annotations

from .checkout_operations import CHECKOUT
from .line_operations import LINE
from .shop_operations import SHOP

OPERATIONS = (*LINE, *CHECKOUT, *SHOP)
