"""The real parts that tests run against: one store and one database for each test process."""

from collections.abc import AsyncIterator, Iterator

import pytest

from fairdrop.drivers.store import Store
from fairdrop.embedded import BackgroundServices, start_services
from tests.driven_sale import DrivenSale, Scripts


@pytest.fixture(scope="session")
def services() -> Iterator[BackgroundServices]:
    """Valkey and PostgreSQL in a directory of their own, shared by the tests of this process.

    A test isolates itself by a sale of its own (the store) or a database of its own; one that
    stops or flushes a server starts another.
    """
    with start_services() as running:
        yield running


@pytest.fixture(scope="session")
def store_url(services: BackgroundServices) -> str:
    return services.store_url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    # The timeout is the product's when a test is about it; here a busy machine fails no test.
    store = Store(store_url, timeout_s=30)
    yield store
    await store.close()


@pytest.fixture
def sale(store: Store) -> DrivenSale:
    """A sale nobody else knows, not loaded yet, whose time the test passes in."""
    return DrivenSale(Scripts(store))
