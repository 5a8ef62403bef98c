"""Who may come, and how often: rate limits, proofs of work, CAPTCHAs, invitations (SPEC W18, W19)."""

from .addresses import Addresses
from .captcha import CAPTCHAS, CaptchaResult, CaptchaVerifier
from .limits import Exceeded, Limits, Policy
from .proofs import Proof, Proofs, SpendOutcome

__all__ = [
    "CAPTCHAS",
    "Addresses",
    "CaptchaResult",
    "CaptchaVerifier",
    "Exceeded",
    "Limits",
    "Policy",
    "Proof",
    "Proofs",
    "SpendOutcome",
]
