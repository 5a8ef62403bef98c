"""The composition root: the only place where the parts meet.

:class:`Parts` is everything one process needs, made from the settings; web workers, the background
worker, the command line and tests all begin here.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from fairdrop import faults
from fairdrop.access import (
    CAPTCHAS,
    Addresses,
    CaptchaVerifier,
    Invites,
    Limits,
    Policy,
    Proofs,
    ShopTokens,
)
from fairdrop.catalog import Catalog
from fairdrop.checkout import (
    Answers,
    Checkout,
    Inbox,
    Loader,
    Reconciler,
    Refunds,
    Restoration,
    Settlement,
    Stock,
    StockLoading,
    Sweeper,
    Warehouse,
)
from fairdrop.draw import Beacons, Draws, EntryProofs
from fairdrop.drivers.database import Database
from fairdrop.drivers.store import Store, Waits
from fairdrop.errors import ConfigurationError, StoreUnavailable
from fairdrop.inventory import Inventory, VerifiedMarks
from fairdrop.notifications import Mailer, Post, parse_address
from fairdrop.outbox import Relay
from fairdrop.payments import Gateway, GuardedGateway, SandboxGateway
from fairdrop.waiting_room import (
    AdmissionTokens,
    ApiKeys,
    Completions,
    Receipts,
    StreamTickets,
    VisitorTokens,
    WaitingRoom,
    read_keys,
    split_keys,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import SecretStr

    from fairdrop.payments.stripe import StripeGateway
    from fairdrop.settings import Settings

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """One process's services, connected to one store, one database and the gateways."""

    settings: Settings
    store: Store
    database: Database
    gateways: dict[str, Gateway]
    catalog: Catalog
    waiting_room: WaitingRoom
    inventory: Inventory
    checkout: Checkout
    inbox: Inbox
    loader: Loader
    stock: Stock
    stock_loading: StockLoading
    settlement: Settlement
    sweeper: Sweeper
    reconciler: Reconciler
    refunds: Refunds
    mailer: Mailer | None
    """None: no mail server is configured, and no mail is due."""
    relay: Relay
    answers: Answers
    admissions: AdmissionTokens
    visitors: VisitorTokens
    receipts: Receipts
    restoration: Restoration
    verified_marks: VerifiedMarks
    completions: Completions
    addresses: Addresses
    limits: Limits
    draws: Draws
    tickets: StreamTickets
    entry_proofs: EntryProofs
    proofs: Proofs
    invites: Invites
    shop_tokens: ShopTokens | None
    captcha: CaptchaVerifier | None
    server_keys: ApiKeys
    """Keys of the shop's servers: they report completions, and act for buyers."""


def public_url(settings: Settings) -> str:
    """How browsers reach the web workers, without a slash at the end."""
    return (settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/")


@asynccontextmanager
async def open_parts(settings: Settings) -> AsyncIterator[Parts]:
    """Make and connect everything; close it all at the end.

    Raises ConfigurationError for a missing setting and DatabaseUnavailable when the database does
    not answer. The store may be away: what needs it answers 503 until it is back.
    """
    store = Store(
        _required(settings.store_url, "FAIRDROP_STORE_URL"),
        timeout_s=settings.store_timeout_ms / 1_000,
        waits=Waits(
            settings.store_wait_replicas,
            settings.store_wait_aof,
            settings.store_wait_timeout_ms,
        ),
    )
    database = Database(
        _required(settings.database_url, "FAIRDROP_DATABASE_URL"),
        max_size=settings.database_connections,
    )
    gateways: dict[str, Gateway] = {}
    sandbox, stripe = _sandbox(settings), _stripe(settings)
    if sandbox is not None:
        gateways["sandbox"] = _guarded(sandbox, settings)
    if stripe is not None:
        gateways["stripe"] = _guarded(stripe, settings)
    faults.enable(production=bool(gateways.keys() - {"sandbox"}))
    visitor_key = _secret(settings.visitor_key, "FAIRDROP_VISITOR_KEY")
    signing_keys = _secret(settings.signing_keys, "FAIRDROP_SIGNING_KEYS")
    admissions = _admission_tokens(signing_keys)
    server_keys = _server_keys(settings)
    addresses = _addresses(settings)
    receipts = Receipts(visitor_key.encode())
    captcha = _captcha(settings)
    post = _post(settings)
    shop_tokens = _shop_tokens(settings)
    await database.open()
    await _tell_of_eviction(store)
    try:
        base = public_url(settings)
        catalog = Catalog(database)
        waiting_room, inventory = WaitingRoom(store), Inventory(store)
        draws = Draws(database, waiting_room, Beacons())
        loader = Loader(database, catalog, inventory)
        stock = Stock(database, catalog, inventory, loader)
        inbox = Inbox(database)
        yield Parts(
            settings=settings,
            store=store,
            database=database,
            gateways=gateways,
            catalog=catalog,
            waiting_room=waiting_room,
            inventory=inventory,
            checkout=Checkout(
                database, inventory, gateways, lambda order: f"{base}/orders/{order}"
            ),
            inbox=inbox,
            loader=loader,
            stock=stock,
            stock_loading=_stock_loading(database, catalog, stock, settings),
            settlement=Settlement(database, inventory, waiting_room, mails=post is not None),
            mailer=_mailer(database, post, settings),
            sweeper=Sweeper(database, inventory, waiting_room),
            refunds=Refunds(database, inventory, waiting_room),
            relay=Relay(database, store, kept=settings.events_kept),
            answers=Answers(database),
            reconciler=Reconciler(
                database, gateways, inbox, check_after_ms=settings.payment_check_after_ms
            ),
            admissions=admissions,
            visitors=VisitorTokens(visitor_key.encode()),
            receipts=receipts,
            restoration=Restoration(database, waiting_room, receipts, admissions, draws.place),
            verified_marks=VerifiedMarks(visitor_key.encode()),
            completions=Completions(database, waiting_room),
            addresses=addresses,
            limits=_limits(store, settings),
            draws=draws,
            tickets=StreamTickets(visitor_key.encode()),
            entry_proofs=EntryProofs(read_keys(split_keys(signing_keys))),
            proofs=Proofs(
                store,
                visitor_key.encode(),
                max_number=settings.proof_max_number,
                ttl_s=settings.proof_ttl_s,
            ),
            captcha=captcha,
            shop_tokens=shop_tokens,
            invites=Invites(database, visitor_key.encode()),
            server_keys=server_keys,
        )
    finally:
        if captcha is not None:
            await captcha.close()
        if shop_tokens is not None:
            await shop_tokens.close()
        await database.close()
        await store.close()
        for gateway in (sandbox, stripe):
            if gateway is not None:
                await gateway.close()


def check_settings(settings: Settings) -> None:
    """Raise ConfigurationError for the first setting that a process cannot do without."""
    _required(settings.store_url, "FAIRDROP_STORE_URL")
    _required(settings.database_url, "FAIRDROP_DATABASE_URL")
    _secret(settings.visitor_key, "FAIRDROP_VISITOR_KEY")
    _secret(settings.signing_keys, "FAIRDROP_SIGNING_KEYS")


def _sandbox(settings: Settings) -> SandboxGateway | None:
    if settings.gateway_url is None:
        return None
    return SandboxGateway(
        settings.gateway_url,
        _secret(settings.gateway_secret_key, "FAIRDROP_GATEWAY_SECRET_KEY"),
        _secret(settings.gateway_webhook_secret, "FAIRDROP_GATEWAY_WEBHOOK_SECRET"),
        total_timeout_s=settings.gateway_timeout_ms / 1_000,
    )


def _guarded(gateway: Gateway, settings: Settings) -> Gateway:
    return GuardedGateway(
        gateway,
        concurrency=settings.gateway_calls,
        # The adapter's own limit comes first; this one is for calls of several requests, and the wait.
        time_limit_s=2 * settings.gateway_timeout_ms / 1_000,
        failures=settings.gateway_failures,
        open_s=settings.gateway_pause_ms / 1_000,
    )


def _stripe(settings: Settings) -> StripeGateway | None:
    if settings.stripe_secret_key is None:
        return None
    try:
        from fairdrop.payments.stripe import StripeGateway  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            "FAIRDROP_STRIPE_SECRET_KEY is set, and Stripe's library is missing:"
            " pip install 'fairdrop[stripe]'"
        ) from error
    return StripeGateway(
        _secret(settings.stripe_secret_key, "FAIRDROP_STRIPE_SECRET_KEY"),
        _secret(settings.stripe_webhook_secret, "FAIRDROP_STRIPE_WEBHOOK_SECRET"),
        api_url=settings.stripe_api_url,
        total_timeout_s=settings.gateway_timeout_ms / 1_000,
    )


def _post(settings: Settings) -> Post | None:
    if settings.smtp_url is None:
        return None
    password = settings.smtp_password
    return Post(settings.smtp_url, password.get_secret_value() if password is not None else None)


def _mailer(database: Database, post: Post | None, settings: Settings) -> Mailer | None:
    if post is None:
        return None
    base = public_url(settings)
    sender = parse_address(settings.mail_from)
    return Mailer(database, post, sender, lambda order: f"{base}/orders/{order}")


def _stock_loading(
    database: Database, catalog: Catalog, stock: Stock, settings: Settings
) -> StockLoading:
    token = settings.warehouse_token
    warehouse = None
    if settings.warehouse_url is not None:
        warehouse = Warehouse(
            settings.warehouse_url,
            token.get_secret_value() if token is not None else "",
            timeout_s=settings.warehouse_timeout_ms / 1_000,
        )
    return StockLoading(
        database,
        catalog,
        stock,
        warehouse,
        lead_ms=settings.warehouse_lead_ms,
        retry_ms=settings.warehouse_retry_ms,
    )


def _required(value: str | None, variable: str) -> str:
    if not value:
        raise ConfigurationError(
            f"{variable} is not set. `fairdrop up` sets it for embedded services;"
            " `fairdrop web` and `fairdrop worker` need it from you."
        )
    return value


def _secret(value: SecretStr | None, variable: str) -> str:
    if value is None or not value.get_secret_value():
        raise ConfigurationError(f"{variable} (or {variable}_FILE) is not set")
    return value.get_secret_value()


def _admission_tokens(signing_keys: str) -> AdmissionTokens:
    try:
        return AdmissionTokens(split_keys(signing_keys))
    except ValueError as error:
        raise ConfigurationError(f"FAIRDROP_SIGNING_KEYS: {error}") from None


def _server_keys(settings: Settings) -> ApiKeys:
    """The shop's keys; the key of the control plane may do what they may."""
    shop, admin = settings.shop_keys, settings.admin_key
    try:
        return ApiKeys(
            shop.get_secret_value() if shop is not None else "",
            also=admin.get_secret_value() if admin is not None else "",
        )
    except ValueError as error:
        raise ConfigurationError(f"FAIRDROP_SHOP_KEYS: {error}") from None


def _addresses(settings: Settings) -> Addresses:
    try:
        return Addresses(settings.trusted_proxies.replace(",", " ").split())
    except ValueError as error:
        raise ConfigurationError(f"FAIRDROP_TRUSTED_PROXIES: {error}") from None


def _limits(store: Store, settings: Settings) -> Limits:
    return Limits(
        store,
        Policy("requests", settings.limit_requests_per_s, settings.limit_requests_burst),
        Policy("identities", settings.limit_identities_per_s, settings.limit_identities_burst),
        Policy("buyer", settings.limit_buyer_per_s, settings.limit_buyer_burst),
        # A code has at least eight characters: so few tries find none.
        Policy("invites", 0.5, 20),
        # Beyond these nobody is refused: they are what "adaptive" goes by.
        Policy("joins", settings.busy_joins_per_s, max(1, round(settings.busy_joins_per_s))),
        Policy("joins_address", settings.busy_address_per_s, 10),
    )


async def _tell_of_eviction(store: Store) -> None:
    """Say at the start that the store may throw a line away (case 9); whether it answers, readiness tells."""
    with suppress(StoreUnavailable):
        policy = await store.eviction_policy()
        if policy != "noeviction":
            _log.error(
                "store_evicts_keys",
                policy=policy,
                advice="When its memory is full, people lose their places: CONFIG SET maxmemory-policy"
                " noeviction, in its configuration file too.",
            )


def _captcha(settings: Settings) -> CaptchaVerifier | None:
    if settings.captcha == "off":
        return None
    if not settings.captcha_site_key:
        raise ConfigurationError("FAIRDROP_CAPTCHA_SITE_KEY is not set")
    return CAPTCHAS[settings.captcha_provider](
        settings.captcha_site_key,
        _secret(settings.captcha_secret, "FAIRDROP_CAPTCHA_SECRET"),
        url=settings.captcha_url,
        script_url=settings.captcha_script_url,
        timeout_s=settings.captcha_timeout_ms / 1_000,
    )


def _shop_tokens(settings: Settings) -> ShopTokens | None:
    secret = settings.shop_jwt_secret
    if settings.shop_jwks_url is None and secret is None:
        return None
    try:
        return ShopTokens(
            audience=settings.shop_jwt_audience,
            issuer=settings.shop_jwt_issuer,
            jwks_url=settings.shop_jwks_url,
            secret=secret.get_secret_value() if secret is not None else None,
        )
    except ValueError as error:
        raise ConfigurationError(
            f"FAIRDROP_SHOP_JWT_SECRET, FAIRDROP_SHOP_JWKS_URL: {error}"
        ) from None
