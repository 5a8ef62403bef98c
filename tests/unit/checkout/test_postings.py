"""Postings balance for any amounts, and move the accounts that they should (O10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from fairdrop.ids import uuid7
from fairdrop.ledger import Account, Entry, payment, refund_owed, refund_paid, unearned
from fairdrop.money import fee_minor

amounts = st.integers(0, 10**13)
positive = st.integers(1, 10**13)
ORDER, SALE, REFUND = uuid7(), uuid7(), uuid7()


def net(*postings: list[Entry]) -> Counter[Account]:
    """Debit less credit of each account that is not level; a Counter shows absent ones as 0."""
    sums: Counter[Account] = Counter()
    for entry in (entry for posting in postings for entry in posting):
        sums[entry.account] += entry.debit_minor - entry.credit_minor
    return Counter({account: value for account, value in sums.items() if value})


def check(posting: list[Entry]) -> None:
    """What the database asks of every posting."""
    assert sum(entry.debit_minor for entry in posting) == sum(e.credit_minor for e in posting)
    assert len({(entry.reference, entry.kind, entry.account) for entry in posting}) == len(posting)
    assert len({(entry.reference, entry.kind, entry.currency) for entry in posting}) <= 1
    for entry in posting:
        assert min(entry.debit_minor, entry.credit_minor) == 0
        assert max(entry.debit_minor, entry.credit_minor) > 0


@given(subtotal=amounts, fee=amounts)
def test_a_payment_balances_and_is_revenue_and_fee(subtotal: int, fee: int) -> None:
    posting = payment(ORDER, SALE, "EUR", subtotal, fee)
    check(posting)
    moved = net(posting)
    assert moved[Account.GATEWAY_CLEARING] == subtotal + fee
    assert (moved[Account.SALES], moved[Account.FEES]) == (-subtotal, -fee)


def test_an_order_of_nothing_books_nothing() -> None:
    assert payment(ORDER, SALE, "EUR", 0, 0) == []


@given(price=positive, quantity=st.integers(1, 10), bps=st.integers(0, 10_000))
def test_what_is_booked_is_what_was_shown(price: int, quantity: int, bps: int) -> None:
    """Case 24: price and fee, rounded once, add up to the total to the last minor unit."""
    subtotal = price * quantity
    fee = fee_minor(subtotal, bps)
    posting = payment(ORDER, SALE, "JPY", subtotal, fee)
    check(posting)
    assert net(posting)[Account.GATEWAY_CLEARING] == subtotal + fee
    assert 0 <= fee <= subtotal


@given(amount=positive)
def test_late_money_goes_in_and_out_in_four_rows_and_leaves_revenue_alone(amount: int) -> None:
    """O7."""
    into = unearned(REFUND, ORDER, SALE, "EUR", amount)
    out = refund_paid(REFUND, ORDER, SALE, "EUR", amount)
    check(into)
    check(out)
    assert len(into + out) == 4
    assert {entry.account for entry in into + out} == {
        Account.GATEWAY_CLEARING,
        Account.REFUND_LIABILITY,
    }
    assert net(into) == {Account.GATEWAY_CLEARING: amount, Account.REFUND_LIABILITY: -amount}
    assert net(into, out) == Counter()


@given(subtotal=positive, fee=amounts)
def test_a_refund_in_full_leaves_every_account_as_it_was_before_the_sale(
    subtotal: int, fee: int
) -> None:
    """O9."""
    sold = payment(ORDER, SALE, "KWD", subtotal, fee)
    owed = refund_owed(REFUND, ORDER, SALE, "KWD", subtotal, fee)
    paid = refund_paid(REFUND, ORDER, SALE, "KWD", subtotal + fee)
    for posting in (sold, owed, paid):
        check(posting)
    assert net(sold, owed)[Account.REFUND_LIABILITY] == -(subtotal + fee)
    assert net(sold, owed, paid) == Counter()


@given(amount=positive)
def test_the_postings_of_one_refund_have_kinds_of_their_own(amount: int) -> None:
    """The key of a row is (reference, kind, account): two steps of one refund never collide."""
    makers: list[Callable[[], list[Entry]]] = [
        lambda: unearned(REFUND, ORDER, SALE, "EUR", amount),
        lambda: refund_owed(REFUND, ORDER, SALE, "EUR", amount, 0),
        lambda: refund_paid(REFUND, ORDER, SALE, "EUR", amount),
    ]
    keys = [{(entry.reference, entry.kind, entry.account) for entry in make()} for make in makers]
    assert len(set.union(*keys)) == sum(map(len, keys))
