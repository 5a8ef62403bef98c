"""Settings: from the environment, then from a file, then the defaults below.

Environment variables begin with ``FAIRDROP_``. The file is ``fairdrop.toml`` in the working
directory, or the one that ``FAIRDROP_CONFIG`` names. Secrets come from these two places only, or
from a file that a ``*_FILE`` variable names; they are never printed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

Milliseconds = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """Everything that can be set. Each field is a variable ``FAIRDROP_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="FAIRDROP_", extra="forbid", frozen=True)

    data_dir: Path = Field(Path(".fairdrop"), description="Where embedded services keep their data")
    store_url: str | None = Field(
        None, description="An external Valkey or Redis; without it an embedded one is started"
    )
    database_url: str | None = Field(
        None, description="An external PostgreSQL; without it an embedded one is started"
    )
    host: str = Field("127.0.0.1", description="Address that the web workers listen on")
    port: int = Field(8000, ge=0, le=65_535, description="Port of the web workers; 0 picks one")
    web_workers: int = Field(1, ge=1, le=256, description="Web worker processes")
    public_url: str | None = Field(
        None, description="How browsers reach the web workers; default: host and port"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info")

    admin_key: SecretStr | None = Field(None, description="API key of the control plane")
    shop_keys: SecretStr | None = Field(
        None, description="API keys of the shop's servers: report completions, act for buyers"
    )
    shop_jwks_url: str | None = Field(
        None, description="Public keys of the shop's own logins, whose tokens name buyers"
    )
    shop_jwt_secret: SecretStr | None = Field(
        None, description="The secret that they are signed with instead (HS256)"
    )
    shop_jwt_audience: str = Field("fairdrop", description="Whom these tokens are meant for")
    shop_jwt_issuer: str = Field("", description="Who has to have issued them; empty: anybody")
    visitor_key: SecretStr | None = Field(None, description="Key that signs visitor tokens")
    signing_keys: SecretStr | None = Field(
        None, description="Private keys, newest first, that sign admission tokens: PEM or JWK"
    )
    token_algorithm: Literal["EdDSA", "ES256", "HS256"] = Field(
        "EdDSA", description="What new signing keys are made for"
    )

    shop_origins: str = Field(
        "",
        description="Shops of your own that the waiting room leads to: https://shop.example.org …",
        pattern=r"^\s*(https?://[A-Za-z0-9.:\[\]-]+(\s+|$))*$",
    )

    trusted_proxies: str = Field(
        "private",
        description="Networks whose X-Forwarded-For is believed, and that no limit is for",
    )
    limit_requests_per_s: float = Field(
        100, ge=0, description="Requests per second of one address; 0 is no limit"
    )
    limit_requests_burst: int = Field(1_000, ge=1, description="Requests of one address at once")
    limit_identities_per_s: float = Field(
        2, ge=0, description="New visitors per second of one address; 0 is no limit"
    )
    limit_identities_burst: int = Field(
        100, ge=1, description="New visitors of one address at once"
    )
    limit_buyer_per_s: float = Field(
        10, ge=0, description="Requests per second of one visitor; 0 is no limit"
    )
    limit_buyer_burst: int = Field(60, ge=1, description="Requests of one visitor at once")

    proof_of_work: Literal["off", "adaptive", "always"] = Field(
        "off", description="When browsers compute before they get a place"
    )
    proof_at_claim: bool = Field(
        default=False, description="Compute again before going in, where it is always asked for"
    )
    proof_max_number: int = Field(
        100_000, ge=1_000, le=10_000_000, description="Most hashes of one proof of work"
    )
    proof_ttl_s: int = Field(300, ge=10, description="How long a challenge may be worked at")
    captcha: Literal["off", "adaptive", "always"] = Field(
        "off", description="When people show that they are people before they get a place"
    )
    captcha_provider: Literal["turnstile", "hcaptcha"] = Field(
        "turnstile", description="Whose CAPTCHA"
    )
    captcha_site_key: str = Field("", description="The public key of the CAPTCHA")
    captcha_secret: SecretStr | None = Field(None, description="The secret key of the CAPTCHA")
    captcha_url: str | None = Field(None, description="Another address of the CAPTCHA's check")
    captcha_script_url: str | None = Field(
        None, description="Another address of the CAPTCHA's widget", pattern=r"^https?://"
    )
    captcha_timeout_ms: Milliseconds = Field(
        2_000, description="How long the CAPTCHA's service may take"
    )
    captcha_outage: Literal["refuse", "allow"] = Field(
        "allow", description="What happens while the CAPTCHA's service does not answer"
    )
    busy_joins_per_s: float = Field(
        500, ge=0, description="More joins per second than this are a rush (adaptive checks)"
    )
    busy_address_per_s: float = Field(
        0.2, ge=0, description="The same for one address, beyond its first ten"
    )

    push_port: int = Field(
        8001, ge=0, le=65_535, description="Port of the push process; 0 picks one"
    )
    push_url: str | None = Field(
        None,
        description="How browsers reach the push process: https://… or / when a proxy puts it under"
        " the same address; without it they poll",
        pattern=r"^(/|https?://[A-Za-z0-9.:\[\]-]+/?)$",
    )
    push_connections: int = Field(
        20_000, ge=1, le=1_000_000, description="Streams that one push process keeps open"
    )

    gateway_url: str | None = Field(None, description="Address of the sandbox gateway")
    gateway_secret_key: SecretStr | None = Field(None)
    gateway_webhook_secret: SecretStr | None = Field(None)
    stripe_secret_key: SecretStr | None = Field(
        None, description="Secret key of a Stripe account; with it there is a gateway `stripe`"
    )
    stripe_webhook_secret: SecretStr | None = Field(
        None, description="Signing secret of Stripe's webhook endpoint, /v1/webhooks/stripe"
    )
    stripe_api_url: str | None = Field(
        None, description="Another server of Stripe's API, for tests"
    )
    gateway_timeout_ms: Milliseconds = Field(
        5_000, description="How long a payment gateway may take to answer"
    )
    gateway_calls: int = Field(
        64, ge=1, le=10_000, description="Calls that a process has under way at a gateway"
    )
    gateway_failures: int = Field(
        5, ge=1, le=1_000, description="Failures in a row until a gateway is left alone"
    )
    gateway_pause_ms: Milliseconds = Field(
        5_000, description="How long it is left alone until one call tries it"
    )

    smtp_url: str | None = Field(
        None, description="Mail server: smtp://[user@]host[:port] or smtps://…; without it no mails"
    )
    smtp_password: SecretStr | None = Field(None, description="Password of the mail server's user")
    mail_from: str = Field("fairdrop@localhost", description="Who confirmations come from")
    relay_interval_ms: Milliseconds = Field(
        200, description="How often the outbox is looked at while it has less than a batch"
    )
    events_kept: int = Field(
        100_000, ge=1_000, description="Newest events that the store's stream keeps"
    )
    mail_interval_ms: Milliseconds = Field(500, description="How often due mails are looked for")
    mails_per_s: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Mails that one worker sends per second, in a rush a quarter of it: providers have"
        " limits",
    )

    tick_interval_ms: Milliseconds = Field(100, description="How often people are called")
    adapt_interval_ms: Milliseconds = Field(
        5_000, description="How often an adaptive pace takes a step"
    )
    sweep_interval_ms: Milliseconds = Field(1_000, description="How often deadlines are enforced")
    settle_interval_ms: Milliseconds = Field(
        30, description="How often the inbox is looked at; in a rush, a third as often"
    )
    reconcile_interval_ms: Milliseconds = Field(
        1_000, description="How often payments and refunds that are due are looked for"
    )
    payment_check_after_ms: Milliseconds = Field(
        5_000, description="How long a webhook may take before the gateway is asked"
    )
    store_timeout_ms: Milliseconds = Field(
        400, description="How long the store may take before buyers are told 503"
    )
    warehouse_url: str | None = Field(
        None,
        description="Where stock is asked for before a sale opens; {sale} is its slug, {id} its id",
        pattern=r"^https?://",
    )
    warehouse_token: SecretStr | None = Field(None, description="Bearer token for the warehouse")
    warehouse_lead_ms: Milliseconds = Field(
        60_000, description="How long before the opening the warehouse is asked"
    )
    warehouse_timeout_ms: Milliseconds = Field(
        5_000, description="How long the warehouse may take to answer"
    )
    warehouse_retry_ms: Milliseconds = Field(
        2_000, description="How long after a failure the warehouse is asked again"
    )
    store_wait_replicas: int = Field(
        0, ge=0, le=16, description="Replicas that have a change before it is answered (WAIT)"
    )
    store_wait_aof: bool = Field(
        default=False,
        description="The append-only file has a change before it is answered (WAITAOF)",
    )
    store_wait_timeout_ms: Milliseconds = Field(
        250, description="How long that may take; then 503, and the change stands"
    )
    database_connections: int = Field(8, ge=2, le=200, description="Connections a process keeps")

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in SECRETS:
            path = os.environ.get(f"FAIRDROP_{name.upper()}_FILE")
            if path and not values.get(name):
                values[name] = Path(path).read_text("utf-8").strip()
        return values

    @model_validator(mode="after")
    def _waits_end_in_time(self) -> Self:
        waits = self.store_wait_replicas > 0 or self.store_wait_aof
        if waits and self.store_wait_timeout_ms >= self.store_timeout_ms:
            raise ValueError("store_wait_timeout_ms has to be below store_timeout_ms")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the base class's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What was passed, then the environment, then the file."""
        file = Path(os.environ.get("FAIRDROP_CONFIG", "fairdrop.toml"))
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file))

    def shop_addresses(self) -> tuple[str, ...]:
        """The origins of ``shop_origins``."""
        return tuple(self.shop_origins.split())

    def shown(self) -> dict[str, str]:
        """The effective settings as text, with secrets hidden."""
        shown = {}
        for name, value in self.model_dump().items():
            if name in SECRETS:
                shown[name] = "(set)" if value is not None else "(not set)"
            elif name.endswith("_url") and isinstance(value, str) and "@" in value:
                scheme, rest = value.split("://", 1)
                shown[name] = f"{scheme}://(hidden)@{rest.split('@', 1)[1]}"
            else:
                shown[name] = "" if value is None else str(value)
        return shown


SECRETS = (
    "admin_key",
    "captcha_secret",
    "shop_jwt_secret",
    "shop_keys",
    "visitor_key",
    "signing_keys",
    "gateway_secret_key",
    "gateway_webhook_secret",
    "stripe_secret_key",
    "stripe_webhook_secret",
    "smtp_password",
    "warehouse_token",
)
OTHERS_SECRETS = frozenset(
    {
        "captcha_secret",
        "shop_jwt_secret",
        "stripe_secret_key",
        "stripe_webhook_secret",
        "smtp_password",
        "warehouse_token",
    }
)
"""Secrets that somebody else has made; a site makes the others for itself at its first start."""
