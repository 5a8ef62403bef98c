"""A process that dies between its commit and telling the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairdrop.errors import StoreUnavailable
from tests.integration.checkout.shop import Shop


@contextmanager
def store_not_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is decided inside the block never reaches the store."""

    def away(*_: object) -> object:
        raise StoreUnavailable("the process is dead")

    with monkeypatch.context() as patch:
        for name in ("free", "commit", "commit_many"):
            patch.setattr(shop.parts.inventory, name, away)
        for name in ("complete", "complete_many"):
            patch.setattr(shop.parts.waiting_room, name, away)
        yield
