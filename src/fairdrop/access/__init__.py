"""Who may come, and how often: rate limits, proofs of work, CAPTCHAs, invitations (SPEC W18, W19)."""

from .addresses import Addresses
from .buyers import BuyerRefusal, ShopBuyer, ShopTokens
from .captcha import CAPTCHAS, CaptchaResult, CaptchaVerifier
from .invites import Count, Entry, InviteRefusal, Invites, Kind, Rules, Tier
from .limits import Exceeded, Limits, Policy
from .proofs import Proof, Proofs, SpendOutcome

__all__ = [
    "CAPTCHAS",
    "Addresses",
    "BuyerRefusal",
    "CaptchaResult",
    "CaptchaVerifier",
    "Count",
    "Entry",
    "Exceeded",
    "InviteRefusal",
    "Invites",
    "Kind",
    "Limits",
    "Policy",
    "Proof",
    "Proofs",
    "Rules",
    "ShopBuyer",
    "ShopTokens",
    "SpendOutcome",
    "Tier",
]
