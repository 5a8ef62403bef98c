"""The books are kept by the database itself: only added to, and balanced, whoever asks (O10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

import asyncpg
import pytest

from fairdrop import ledger
from fairdrop.drivers.database import Database
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import uuid7
from fairdrop.ledger import Account, Entry
from tests.integration.checkout.shop import as_superuser, checkout_database

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
async def database_url(services: BackgroundServices) -> str:
    return await checkout_database(services)


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    """The role that owns the tables, which is the one that Fairdrop runs as."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def superuser(services: BackgroundServices, database_url: str) -> AsyncIterator[Connection]:
    url = as_superuser(services.database_url)
    name = database_url.split("?", maxsplit=1)[0].rsplit("/", 1)[-1]
    connection = await asyncpg.connect(url, database=name)
    yield connection
    await connection.close()


def posting(
    *amounts: tuple[str, int, int], currency: str = "EUR", kind: str = "PAYMENT"
) -> list[Entry]:
    """A posting of its own: (account, debit, credit)."""
    reference, sale = uuid7(), uuid7()
    return [
        Entry(reference, kind, Account(account), reference, sale, currency, debit, credit)
        for account, debit, credit in amounts
    ]


def balanced(amount: int = 100, **options: str) -> list[Entry]:
    return posting(("GATEWAY_CLEARING", amount, 0), ("SALES", 0, amount), **options)


async def book(connection: Connection, entries: Sequence[Entry]) -> None:
    await ledger.insert_entries(connection, entries)  # type: ignore[arg-type]


async def rows_of(connection: Connection, entries: Sequence[Entry]) -> int:
    count = await connection.fetchval(
        "SELECT count(*) FROM ledger_entries WHERE reference = ANY($1::uuid[])",
        list({entry.reference for entry in entries}),
    )
    return int(count)


# ---------------------------------------------------------------- insert only


CHANGES = {
    "update": "UPDATE ledger_entries SET debit_minor = debit_minor + 1 WHERE reference = $1",
    "update nothing": "UPDATE ledger_entries SET currency = currency WHERE reference = $1",
    "delete": "DELETE FROM ledger_entries WHERE reference = $1",
    "upsert": "INSERT INTO ledger_entries SELECT * FROM ledger_entries WHERE reference = $1"
    " ON CONFLICT (reference, kind, account) DO UPDATE SET debit_minor = 7",
    "merge": "MERGE INTO ledger_entries l USING (SELECT $1::uuid AS r) s ON l.reference = s.r"
    " WHEN MATCHED THEN DELETE",
    "truncate": "TRUNCATE ledger_entries",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("role", ["owner", "owner with rights", "superuser"])
async def test_nobody_changes_what_was_booked(
    change: str, role: str, owner: Connection, superuser: Connection
) -> None:
    """Rights keep even the owner out; with the rights granted back, triggers do."""
    entries = balanced()
    await book(owner, entries)
    connection = superuser if role == "superuser" else owner
    arguments = [] if change == "truncate" else [entries[0].reference]
    transaction = connection.transaction()
    await transaction.start()
    try:
        if role == "owner with rights":
            await connection.execute("GRANT ALL ON ledger_entries TO current_user")
        expected = (
            asyncpg.InsufficientPrivilegeError
            if role == "owner"
            else asyncpg.RestrictViolationError
        )
        with pytest.raises(expected):
            await connection.execute(CHANGES[change], *arguments)
    finally:
        await transaction.rollback()
    assert await rows_of(owner, entries) == 2


@pytest.mark.parametrize("table", ["order_transitions", "operator_audit"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET at = at", "DELETE FROM {}", "TRUNCATE {}"])
async def test_the_audit_trail_is_not_changed_by_the_service_s_own_role(
    table: str, verb: str, owner: Connection
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await owner.execute(verb.format(table))


# ---------------------------------------------------------------- balanced


UNBALANCED = {
    "one side": posting(("SALES", 0, 100)),
    "a minor unit too much": posting(("GATEWAY_CLEARING", 100, 0), ("SALES", 0, 101)),
    "three rows": posting(("GATEWAY_CLEARING", 110, 0), ("SALES", 0, 100), ("FEES", 0, 9)),
    "two postings that balance together": [
        *posting(("GATEWAY_CLEARING", 100, 0)),
        *posting(("SALES", 0, 100)),
    ],
}
_pair = balanced()
UNBALANCED["two currencies"] = [_pair[0], _pair[1]._replace(currency="USD")]
UNBALANCED["two kinds"] = [_pair[0], _pair[1]._replace(kind="UNEARNED")]


@pytest.mark.parametrize("case", UNBALANCED)
async def test_a_posting_that_does_not_balance_in_each_currency_is_refused(
    case: str, owner: Connection
) -> None:
    entries = UNBALANCED[case]
    with pytest.raises(asyncpg.CheckViolationError, match="does not balance"):
        await book(owner, entries)
    assert await rows_of(owner, entries) == 0


async def test_one_bad_posting_among_many_good_ones_refuses_the_statement(
    owner: Connection,
) -> None:
    good = [entry for _ in range(20) for entry in balanced()]
    with pytest.raises(asyncpg.CheckViolationError):
        await book(owner, [*good, *posting(("FEES", 0, 1))])
    assert await rows_of(owner, good) == 0


async def test_a_statement_that_leaves_a_posting_open_is_refused_before_the_commit(
    owner: Connection,
) -> None:
    """Stricter than a check at the commit: a transaction is never out of balance in between."""
    first, second = balanced()
    transaction = owner.transaction()
    await transaction.start()
    with pytest.raises(asyncpg.CheckViolationError):
        await book(owner, [first])
    await transaction.rollback()
    assert await rows_of(owner, [first, second]) == 0


@pytest.mark.parametrize("way", ["COPY", "WITH", "MERGE", "prepared"])
async def test_no_way_of_inserting_goes_past_the_check(way: str, owner: Connection) -> None:
    (entry,) = posting(("SALES", 0, 100))
    columns = list(Entry._fields)
    with pytest.raises(asyncpg.CheckViolationError, match="does not balance"):
        if way == "COPY":
            await owner.copy_records_to_table("ledger_entries", records=[entry], columns=columns)
        elif way == "WITH":
            await owner.execute(
                f"WITH new AS (INSERT INTO ledger_entries ({', '.join(columns)})"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING 1) SELECT * FROM new",
                *entry,
            )
        elif way == "MERGE":
            await owner.execute(
                "MERGE INTO ledger_entries l USING (SELECT $1::uuid AS r) s ON l.reference = s.r"
                f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)})"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                *entry,
            )
        else:
            statement = await owner.prepare(
                f"INSERT INTO ledger_entries ({', '.join(columns)})"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
            )
            await statement.fetch(*entry)
    assert await rows_of(owner, [entry]) == 0


@pytest.mark.parametrize(
    "amounts",
    [("SALES", 0, 0), ("SALES", 5, 5), ("SALES", -5, 0), ("SALES", 0, -5), ("PETTY_CASH", 5, 0)],
)
async def test_a_row_is_a_debit_or_a_credit_of_an_account_we_have(
    amounts: tuple[str, int, int], owner: Connection
) -> None:
    account, debit, credit = amounts
    reference = uuid7()
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(
            "INSERT INTO ledger_entries VALUES ($1, 'X', $2, $1, $1, 'EUR', $3, $4)",
            reference,
            account,
            debit,
            credit,
        )


async def test_the_same_posting_is_never_booked_twice(owner: Connection) -> None:
    entries = balanced()
    await book(owner, entries)
    with pytest.raises(asyncpg.UniqueViolationError):
        await book(owner, entries)
    with pytest.raises(asyncpg.UniqueViolationError):
        await book(owner, [entry._replace(order_id=uuid7()) for entry in entries])
    assert await rows_of(owner, entries) == 2


async def test_two_postings_to_one_account_at_the_same_instant_both_count(
    parts_database: Database, owner: Connection
) -> None:
    """Case 26: an account is the sum of its rows, so there is no balance to overwrite."""
    postings = [balanced(amount) for amount in range(1, 41)]
    sale = uuid7()
    together = [[entry._replace(sale_id=sale) for entry in entries] for entries in postings]

    async def one(entries: list[Entry]) -> None:
        async with parts_database.transaction() as connection:
            await ledger.insert_entries(connection, entries)

    await asyncio.gather(*(one(entries) for entries in together))
    sums = await ledger.balances(owner, str(sale))  # type: ignore[arg-type]
    assert [tuple(balance) for balance in sums] == [
        ("GATEWAY_CLEARING", "EUR", 820, 0),
        ("SALES", "EUR", 0, 820),
    ]


async def test_a_balance_that_is_read_and_written_loses_one_of_two_postings(
    parts_database: Database,
) -> None:
    """The negative control of the test above: the same two at once, and an account with a balance."""
    both = asyncio.Barrier(2)
    table = f"balance_{uuid7().hex}"

    async def post(amount: int) -> None:
        async with parts_database.transaction() as connection:
            balance = await connection.fetchval(f"SELECT minor FROM {table}")
            await both.wait()
            await connection.execute(f"UPDATE {table} SET minor = $1", balance + amount)

    async with parts_database.connection() as connection:
        await connection.execute(f"CREATE TABLE {table} AS SELECT 0 AS minor")
    async with asyncio.timeout(30):
        await asyncio.gather(post(1), post(2))
    async with parts_database.connection() as connection:
        assert await connection.fetchval(f"DELETE FROM {table} RETURNING minor") < 3
        await connection.execute(f"DROP TABLE {table}")


@pytest.fixture
async def parts_database(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url, max_size=6)
    await database.open()
    yield database
    await database.close()


async def test_balances_are_kept_apart_by_currency(owner: Connection) -> None:
    sale = uuid7()
    for currency in ("EUR", "JPY"):
        entries = [entry._replace(sale_id=sale) for entry in balanced(80, currency=currency)]
        await book(owner, entries)
    sums = await ledger.balances(owner, str(sale))  # type: ignore[arg-type]
    assert {(one.account, one.currency) for one in sums} == {
        (account, currency)
        for account in ("GATEWAY_CLEARING", "SALES")
        for currency in ("EUR", "JPY")
    }
