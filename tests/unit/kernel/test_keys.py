"""Keys of the store: one hash tag a sale, the epoch in each, no key that is not listed."""

import re

import pytest
from redis.crc import key_slot

from fairdrop.drivers.keys import NAMES, sale_key


def test_all_keys_of_a_sale_live_in_one_slot_of_a_cluster() -> None:
    for sale in ("0190b0c0-0000-7000-8000-000000000001", "summer"):
        assert len({key_slot(sale_key(sale, 3, name).encode()) for name in NAMES}) == 1


def test_lists_and_strings_below_a_prefix_live_in_the_same_slot() -> None:
    prefix = sale_key("summer", 1, "ret")
    assert key_slot(f"{prefix}:seat".encode()) == key_slot(prefix.encode())


def test_another_epoch_another_sale_and_another_name_are_other_keys() -> None:
    keys = {
        sale_key(sale, epoch, name) for sale in ("a", "b") for epoch in (1, 2) for name in NAMES
    }
    assert len(keys) == 2 * 2 * len(NAMES)


def test_a_key_tells_sale_epoch_and_name() -> None:
    assert sale_key("summer", 12, "line") == "fd:{summer}:12:line"


def test_a_key_that_is_not_listed_cannot_be_made() -> None:
    with pytest.raises(KeyError):
        sale_key("summer", 1, "secret")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_key_says_its_type_and_content(name: str) -> None:
    kinds = r"(hash|list|set|sorted set|string|prefix of (lists|hashes|strings))"
    assert re.match(rf"{kinds}\b[^:]*: .+", NAMES[name])
