"""Payments: the gateway protocol, its types, and the adapter of our sandbox gateway."""

from __future__ import annotations

from .gateway import Gateway, GatewayRefused, GatewayUnavailable
from .guarded import GuardedGateway
from .model import (
    CaptureMode,
    EventKind,
    GatewayCharge,
    GatewayEvent,
    GatewayRefund,
    Intent,
    IntentStatus,
    Page,
    PaymentRequest,
    WebhookRefusal,
)
from .sandbox_client import SandboxGateway
from .units import charge_step_minor, from_stripe, stripe_amount

__all__ = [
    "CaptureMode",
    "EventKind",
    "Gateway",
    "GatewayCharge",
    "GatewayEvent",
    "GatewayRefund",
    "GatewayRefused",
    "GatewayUnavailable",
    "GuardedGateway",
    "Intent",
    "IntentStatus",
    "Page",
    "PaymentRequest",
    "SandboxGateway",
    "WebhookRefusal",
    "charge_step_minor",
    "from_stripe",
    "stripe_amount",
]
