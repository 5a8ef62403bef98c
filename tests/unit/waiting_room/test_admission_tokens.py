"""The admission token (W12): what it proves, to whom, for how long, and what is not one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import example, given
from hypothesis import strategies as st

from fairdrop.waiting_room import (
    Admission,
    AdmissionTokens,
    Algorithm,
    KeyRing,
    Refusal,
    Visitor,
    kid_of,
    new_signing_key,
    split_keys,
)


def pem_key(private: Any) -> str:
    text: bytes = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()


KEY = pem_key(Ed25519PrivateKey.generate())
OTHER_KEY = pem_key(Ed25519PrivateKey.generate())
CLAIMS: dict[str, Any] = {
    "sale": "sale-1",
    "buyer": "ann",
    "admission": "adm-1",
    "issued_s": 1_800_000_000,
    "deadline_ms": 1_800_000_300_999,
    "epoch": 4,
}
NOW_S = 1_800_000_001.0


def issue(tokens: AdmissionTokens, **changes: Any) -> str:
    return tokens.issue(**{**CLAIMS, **changes})


def verify(token: str, *keys: str, **changes: Any) -> Admission | Refusal:
    """By another process: nothing is remembered from issuing."""
    tokens = AdmissionTokens(keys or [KEY])
    return tokens.verify(token, **{"sale": "sale-1", "buyer": "ann", "now_s": NOW_S, **changes})


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def forged(header: object, claims: object, signature: bytes) -> str:
    return ".".join(
        [b64(json.dumps(header).encode()), b64(json.dumps(claims).encode()), b64(signature)]
    )


def signed(header: dict[str, Any], claims: object, pem: str = KEY) -> str:
    """A token with a right signature by us, over whatever content."""
    private: Any = load_pem_private_key(pem.encode(), None)
    signing_input = forged(header, claims, b"").rpartition(".")[0]
    return f"{signing_input}.{b64(private.sign(signing_input.encode()))}"


def decoded(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = token.split(".")
    return json.loads(unb64(header)), json.loads(unb64(claims))


# ---------------------------------------------------------------- a good token


def test_a_token_proves_its_claims_to_another_process() -> None:
    assert verify(issue(AdmissionTokens([KEY]))) == Admission(
        iss="fairdrop",
        aud="sale-1",
        sub="ann",
        jti="adm-1",
        iat=1_800_000_000,
        exp=1_800_000_300,
        epoch=4,
    )


def test_a_gateway_verifies_it_with_the_published_key_alone() -> None:
    tokens = AdmissionTokens([KEY])
    token = issue(tokens)
    header, claims = decoded(token)
    (published,) = [key for key in tokens.jwks()["keys"] if key["kid"] == header["kid"]]
    assert (header["alg"], published["alg"], published["crv"]) == ("EdDSA", "EdDSA", "Ed25519")
    signing_input, _, signature = token.rpartition(".")
    Ed25519PublicKey.from_public_bytes(unb64(published["x"])).verify(
        unb64(signature), signing_input.encode()
    )
    assert claims["exp"] == 1_800_000_300


def test_published_keys_have_no_private_part() -> None:
    for key in AdmissionTokens([KEY, OTHER_KEY]).jwks()["keys"]:
        assert set(key) == {"kty", "crv", "x", "kid", "use", "alg"}


def test_the_same_claims_give_the_same_token_in_every_process() -> None:
    assert issue(AdmissionTokens([KEY])) == issue(AdmissionTokens([KEY]))


def test_a_token_never_outlives_its_lease() -> None:
    for deadline_ms in (1_800_000_300_000, 1_800_000_300_001, 1_800_000_300_999):
        admission = verify(issue(AdmissionTokens([KEY]), deadline_ms=deadline_ms))
        assert isinstance(admission, Admission)
        assert admission.exp * 1_000 <= deadline_ms


# ---------------------------------------------------------------- each reason has its name


def test_no_token_is_told_from_a_bad_one() -> None:
    assert verify("") is Refusal.REQUIRED


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"sale": "sale-2"}, Refusal.OTHER_SALE),
        ({"buyer": "bob"}, Refusal.OTHER_BUYER),
        ({"now_s": 1_800_000_300.0}, Refusal.EXPIRED),
        ({"now_s": 1_900_000_000.0}, Refusal.EXPIRED),
    ],
)
def test_a_token_elsewhere_is_refused_by_name(
    changes: dict[str, Any], refusal: Refusal, *, remembered: bool
) -> None:
    tokens = AdmissionTokens([KEY])
    token = issue(tokens if remembered else AdmissionTokens([KEY]))
    asked = {"sale": "sale-1", "buyer": "ann", "now_s": NOW_S, **changes}
    assert tokens.verify(token, **asked) is refusal
    assert tokens.verify(token, **asked) is refusal


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"sale": "sale-2"}, Refusal.OTHER_SALE),
        ({"now_s": 1_800_000_300.0}, Refusal.EXPIRED),
    ],
)
def test_a_token_that_was_a_visitor_s_before_is_judged_anew(
    changes: dict[str, Any], refusal: Refusal
) -> None:
    tokens, ann, bob = AdmissionTokens([KEY]), Visitor("ann"), Visitor("bob")
    token = issue(tokens).encode()
    asked: dict[str, Any] = {"sale": "sale-1", "now_s": NOW_S}
    for _ in range(2):
        assert tokens.verify_for(ann, token, **asked) == tokens.verify(
            token.decode(), buyer="ann", **asked
        )
        assert tokens.verify_for(ann, token, **{**asked, **changes}) is refusal
        assert tokens.verify_for(bob, token, **asked) is Refusal.OTHER_BUYER
        assert tokens.verify_for(ann, token + b"x", **asked) is Refusal.FORGED
        assert tokens.verify_for(ann, b"", **asked) is Refusal.REQUIRED
    newer = issue(tokens, admission="adm-2").encode()
    found = tokens.verify_for(ann, newer, **asked)
    assert isinstance(found, Admission)
    assert found.jti == "adm-2"


def test_a_token_is_good_until_its_very_last_moment() -> None:
    assert isinstance(verify(issue(AdmissionTokens([KEY])), now_s=1_800_000_299.999), Admission)


# ---------------------------------------------------------------- forgeries


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_change_in_any_part_is_a_forgery(part: int) -> None:
    token = issue(AdmissionTokens([KEY]))
    parts = token.split(".")
    for at in range(len(parts[part]) - 1):  # the last character may carry bits that mean nothing
        other = "A" if parts[part][at] != "A" else "B"
        changed = parts[part][:at] + other + parts[part][at + 1 :]
        assert verify(".".join([*parts[:part], changed, *parts[part + 1 :]])) is Refusal.FORGED


def test_a_changed_claim_is_a_forgery() -> None:
    token = issue(AdmissionTokens([KEY]))
    header, claims = decoded(token)
    signature = unb64(token.split(".")[2])
    for change in ({"sub": "bob"}, {"aud": "sale-2"}, {"exp": 2_000_000_000}, {"jti": "adm-2"}):
        assert verify(forged(header, {**claims, **change}, signature)) is Refusal.FORGED


def test_a_token_without_a_signature_is_a_forgery() -> None:
    header, claims = decoded(issue(AdmissionTokens([KEY])))
    for algorithm in ("none", "None", "NONE", ""):
        assert verify(forged({**header, "alg": algorithm}, claims, b"")) is Refusal.FORGED
    assert verify(forged(header, claims, b"")) is Refusal.FORGED


def test_a_mac_with_the_public_key_as_its_secret_is_a_forgery() -> None:
    tokens = AdmissionTokens([KEY])
    header, claims = decoded(issue(tokens))
    public = unb64(tokens.jwks()["keys"][0]["x"])
    unsigned = forged({**header, "alg": "HS256"}, claims, b"").rpartition(".")[0]
    mac = hmac.digest(public, unsigned.encode(), hashlib.sha256)
    assert verify(f"{unsigned}.{b64(mac)}") is Refusal.FORGED


def test_a_key_that_the_token_brings_along_is_not_believed() -> None:
    brought = AdmissionTokens([OTHER_KEY])
    header, claims = decoded(issue(brought))
    for name, value in (("jwk", brought.jwks()["keys"][0]), ("jku", "https://example.com/jwks")):
        assert verify(signed({**header, name: value}, claims, OTHER_KEY)) is Refusal.FORGED


def test_another_key_under_our_keys_name_is_a_forgery() -> None:
    header, claims = decoded(issue(AdmissionTokens([KEY])))
    assert verify(signed(header, claims, OTHER_KEY)) is Refusal.FORGED


def test_a_token_of_another_issuer_is_a_forgery_though_the_key_is_ours() -> None:
    assert verify(issue(AdmissionTokens([KEY], issuer="elsewhere"))) is Refusal.FORGED


@pytest.mark.parametrize(
    "claims",
    [
        {},
        [],
        None,
        "ann",
        {"iss": "fairdrop", "aud": "sale-1", "sub": "ann"},
        {
            "iss": "fairdrop",
            "aud": ["sale-1"],
            "sub": "ann",
            "jti": "a",
            "iat": 1,
            "exp": 2,
            "epoch": 1,
        },
        {
            "iss": "fairdrop",
            "aud": "sale-1",
            "sub": "ann",
            "jti": "a",
            "iat": 1,
            "exp": "x",
            "epoch": 1,
        },
    ],
)
def test_content_of_another_shape_is_a_forgery_though_the_key_is_ours(claims: object) -> None:
    header, _ = decoded(issue(AdmissionTokens([KEY])))
    assert verify(signed(header, claims)) is Refusal.FORGED


@given(
    token=st.one_of(st.text(min_size=1), st.lists(st.text(), min_size=3, max_size=3).map(".".join))
)
@example(token="..")
@example(token="a.b.c")
@example(token="é.é.é")
@example(token="\x00")
@example(token="." * 10_000)
@example(token="A" * 200_000)
@example(token=forged({"alg": ["EdDSA"], "kid": {}}, {}, b"x" * 64))
@example(token=forged([], {}, b"x" * 64))
@example(token=forged({"alg": "EdDSA", "crit": ["exp"]}, {}, b"x" * 64))
@example(token=forged({"alg": "EdDSA", "kid": 7}, {}, b"x" * 64))
@example(token=b64(b"[" * 500) + ".e30." + b64(b"x" * 64))
def test_nothing_that_a_client_can_send_is_more_than_a_forgery(token: str) -> None:
    assert verify(token) in {Refusal.FORGED, Refusal.REQUIRED}


# ---------------------------------------------------------------- algorithms

each_algorithm = pytest.mark.parametrize("algorithm", list(Algorithm))


@each_algorithm
def test_each_algorithm_proves_the_same_claims(algorithm: Algorithm) -> None:
    key = new_signing_key(algorithm)
    token = issue(AdmissionTokens([key]))
    assert decoded(token)[0]["alg"] == algorithm
    assert isinstance(verify(token, key), Admission)
    assert verify(token, new_signing_key(algorithm)) is Refusal.FORGED


@each_algorithm
def test_asking_again_gives_the_same_token_and_signs_nothing(algorithm: Algorithm) -> None:
    """Also with ES256, whose signatures differ each time."""
    tokens = AdmissionTokens([new_signing_key(algorithm)])
    assert issue(tokens) == issue(tokens)
    assert len(tokens._verified) == 1


def test_a_shared_secret_is_never_published() -> None:
    secret = new_signing_key(Algorithm.HS256)
    published = AdmissionTokens([secret, KEY]).jwks()
    assert [key["alg"] for key in published["keys"]] == ["EdDSA"]
    assert json.loads(secret)["k"] not in json.dumps(published)
    assert json.loads(secret)["kid"] not in json.dumps(published)


def test_a_shop_with_the_shared_secret_verifies_without_any_published_key() -> None:
    secret = new_signing_key(Algorithm.HS256)
    token = issue(AdmissionTokens([secret]))
    for form in (secret, json.loads(secret)["k"]):
        assert KeyRing.published({"keys": []}, [form]).read(token) is not None
    assert KeyRing.published({"keys": [json.loads(secret)]}).read(token) is None


@pytest.mark.parametrize("claimed", list(Algorithm))
@pytest.mark.parametrize("real", list(Algorithm))
def test_a_token_cannot_choose_the_algorithm(real: Algorithm, claimed: Algorithm) -> None:
    """Each key has one (RFC 8725): the published part of a key is no secret to sign with."""
    if real is claimed:
        return
    key, other = new_signing_key(real), new_signing_key(claimed)
    tokens = AdmissionTokens([key])
    kid = decoded(issue(tokens))[0]["kid"]
    stranger = json.loads(other) | {"kid": kid}
    forged_token = issue(AdmissionTokens([json.dumps(stranger)]))
    assert decoded(forged_token)[0] == {"alg": claimed, "kid": kid, "typ": "JWT"}
    assert verify(forged_token, key) is Refusal.FORGED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        '{"kty":"oct","k":"c2hvcnQ"}',
        '{"kty":"OKP","crv":"X25519","x":"AA","d":"AA"}',
        '{"kty":"RSA"}',
        "{",
        pem_key(ec.generate_private_key(ec.SECP384R1())),
        json.dumps(AdmissionTokens([KEY]).jwks()["keys"][0]),
        KEY.replace("MC4", "MC5"),
    ],
)
def test_what_is_no_signing_key_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which of its words depends on the key
        AdmissionTokens(split_keys(text))


def test_keys_are_read_from_pem_and_jwk_in_any_mixture() -> None:
    es256 = pem_key(ec.generate_private_key(ec.SECP256R1()))
    jwk = new_signing_key(Algorithm.HS256)
    keys = split_keys(f"\n{KEY}\n\n{jwk}\n{es256}{jwk}")
    assert keys == [KEY.strip() + "\n", jwk, es256.strip() + "\n", jwk]
    found = [key.algorithm for key in AdmissionTokens(keys).keys]
    assert found == ["EdDSA", "HS256", "ES256", "HS256"]


@given(st.text())
@example(b64(b"[" * 5_000) + ".x")
@example(b64(b"[]") + ".x")
@example(b64(b'{"kid":3}') + ".x")
def test_the_name_of_a_key_is_a_text_whatever_a_client_sends(token: str) -> None:
    assert isinstance(kid_of(token), str)


# ---------------------------------------------------------------- rotation


def test_tokens_of_the_old_key_are_good_while_the_keys_overlap() -> None:
    old = issue(AdmissionTokens([OTHER_KEY]))
    rotated = AdmissionTokens([KEY, OTHER_KEY])
    assert isinstance(verify(old, KEY, OTHER_KEY), Admission)
    assert isinstance(verify(issue(rotated), KEY), Admission)
    assert len({key["kid"] for key in rotated.jwks()["keys"]}) == 2


def test_tokens_of_a_retired_key_are_forgeries() -> None:
    assert verify(issue(AdmissionTokens([OTHER_KEY])), KEY) is Refusal.FORGED


def test_a_new_key_is_known_before_it_signs() -> None:
    """So that no process or gateway meets a token whose key it has not heard of."""
    at_s = CLAIMS["issued_s"]
    coming = new_signing_key(signs_from_s=at_s + 600)
    tokens = AdmissionTokens([coming, KEY])
    coming_kid = json.loads(coming)["kid"]
    assert coming_kid in {key["kid"] for key in tokens.jwks()["keys"]}
    assert decoded(issue(tokens))[0]["kid"] != coming_kid
    assert decoded(issue(tokens, issued_s=at_s + 600))[0]["kid"] == coming_kid


def test_an_admission_keeps_its_key_over_a_rotation() -> None:
    """Its token is asked for again and again: each process gives one with the same key."""
    at_s = CLAIMS["issued_s"]
    before = issue(AdmissionTokens([KEY]))
    after = issue(AdmissionTokens([new_signing_key(signs_from_s=at_s + 1), KEY]))
    assert after == before


def test_the_only_key_signs_although_its_time_has_not_come() -> None:
    key = new_signing_key(signs_from_s=CLAIMS["issued_s"] + 1_000)
    assert isinstance(verify(issue(AdmissionTokens([key])), key), Admission)


def test_a_process_without_a_signing_key_does_not_start() -> None:
    with pytest.raises(ValueError, match="signing key"):
        AdmissionTokens([])


# ---------------------------------------------------------------- memory


def test_what_a_process_remembers_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairdrop.waiting_room.tokens._REMEMBERED", 20)
    tokens = AdmissionTokens([KEY])
    made = [issue(tokens, admission=f"adm-{n}") for n in range(60)]
    assert len(tokens._verified) <= 20
    for token in made:
        admission = tokens.verify(token, sale="sale-1", buyer="ann", now_s=NOW_S)
        assert isinstance(admission, Admission)


def test_forgeries_are_not_remembered() -> None:
    tokens = AdmissionTokens([KEY])
    for n in range(100):
        tokens.verify(f"a.b.{n}", sale="sale-1", buyer="ann", now_s=NOW_S)
    assert not tokens._verified
