"""Masking secrets in anything that is shown: logs, commands, facts.

Masks what is secret by its shape (tokens with a known prefix, JWTs, keys) and by its place (the value
of ``--api-key``, of ``HF_TOKEN=``, of ``api_key=`` in a repr, credentials of a URL). Words that only
sound secret stay: ``tokenizer_path``, ``max_total_num_tokens=4096``, ``eos_token='</s>'``, hashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

MASK = "<hidden>"
_PLACEHOLDER = "redacted-"  # mtpdoctor.anonymise puts these where MASK would stand

# -- secrets known by their shape ------------------------------------------------------------------
# fmt: off
_SHAPE_TRIGGERS = (
    "hf_", "api_org_", "sk-", "AKIA", "ASIA", "AGPA", "AIDA", "AROA", "ANPA", "ANVA", "ABIA", "ACCA",
    "gh", "glpat-", "xox", "nvapi-", "pypi-", "npm_", "dckr_pat_", "AIza", "ya29.", "eyJ", "-----BEGIN",
)
# fmt: on
_SHAPE = "|".join(
    (
        r"(?<![A-Za-z0-9])(?:hf_|api_org_)(?:[A-Za-z0-9]{16,}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{8,})(?![A-Za-z0-9_])",
        r"(?<![A-Za-z0-9_-])sk-(?:[A-Za-z0-9]{16,}[\w-]*|(?=[\w-]*[0-9A-Z])[\w-]{8,})",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
        r"|xox[abeprs]-[\w-]{10,}|nvapi-[\w-]{16,}|pypi-[\w-]{40,}|npm_[A-Za-z0-9]{30,}|dckr_pat_[\w-]{16,}"
        r"|AIza[\w-]{30,}|ya29\.[\w-]{20,})",
        r"(?<![A-Za-z0-9_-])eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    )
)

# -- secrets known by their place ------------------------------------------------------------------
# A value: quoted (with any depth of backslashes before the quotes), or bare up to a delimiter.
_QUOTED = (
    r"(?P<q>\\+[\"'])(?P<v1>(?:(?!(?P=q)).)*)(?:(?P=q)|$|(?=\n))"
    r"|\$?\"(?P<v2>(?:\\.|[^\"\\\n])*)(?:\"|$|(?=\n))"
    r"|\$?'(?P<v3>(?:\\?'\\''|\\?'\"'\"'|\\(?='\s+-|'$)|\\.|[^'\\\n])*)(?:'|$|(?=\n))"
)
_BARE = r"(?P<v4>(?:\\[^\s\"']|[,\]})]+(?=[^\s,\]})\"'])|[^\s\"'`;&|<>,\]})\\])+(?:\"[^\s\"]*\"|'[^\s']*')*)"
_VALUE = rf"(?:{_QUOTED}|{_BARE})"

_SECRET_FLAG = (
    r"--?(?:api(?:-k(?:ey?)?)?|admin-api(?:-k(?:ey?)?)?|ssl-keyfile-p[a-z]*"
    r"|(?:[a-z0-9]+[-_])*(?:api[-_]?key|password|passwd|passphrase|secret|secret[-_](?:access[-_])?key"
    r"|access[-_]key|private[-_]key|(?:auth|hf|hub|access|bearer|api|session|github|wandb)[-_]token)|token)"
)
_FLAG = (
    rf"(?<![\w-])(?P<head>{_SECRET_FLAG}(?:\\*[\"'])?(?:=|[ \t]*,[ \t]*|[ \t]*\\\n[ \t]*|[ \t]*\n[ \t]*-"
    rf"[ \t]+|[ \t]+))(?:{_VALUE})"
)
_KEYWORD = (
    r"(?<![A-Za-z0-9_])(?P<head>(?:[a-z0-9]*_)*(?P<name>api_?key|password|passwd|passphrase|secret|secret_key"
    r"|secret_access_key|access_key|access_key_id|private_key|client_secret|credentials?"
    r"|(?:hf|auth|access|api|bearer|refresh|session|security|id|github|hub|use_auth|wandb|modelscope)_token)"
    rf"(?:\\*[\"'])?\s?[=:]\s?)(?:{_VALUE})"
)
_ENV = (
    r"(?<![A-Za-z0-9_])(?P<head>(?P<name>(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|PASSPHRASE|PWD_SECRET|SECRETS?|TOKEN"
    r"|API_?KEY|ACCESS_KEY(?:_ID)?|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)(?:_[A-Z0-9]+)*)"
    rf"(?:\\*[\"'])?(?:=|:[ \t]+|[\"']:[ \t]*))(?:{_VALUE})"
)
# Kubernetes and compose long form: name: HF_TOKEN, value: ... (YAML, JSON, one line or two)
_NAME_VALUE = (
    r"(?P<head>name(?:\\*[\"'])?\s*:\s*(?:\\*[\"'])?(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|SECRETS?|TOKEN|API_?KEY"
    r"|ACCESS_KEY(?:_ID)?|SECRET_KEY|PRIVATE_KEY)(?:_[A-Z0-9]+)*(?:\\*[\"'])?\s*,?\s*(?:\\*[\"'])?value"
    rf"(?:\\*[\"'])?\s*:[ \t]*)(?:{_VALUE})"
)
_HEADER = (
    r"(?P<head>(?<![A-Za-z0-9])(?:proxy-)?authorization(?:\\*[\"'])?\s*[:=]\s*(?:\\*[\"'])?"
    r"(?:(?:bearer|basic|token|digest|apikey|aws4-hmac-sha256)[ \t]+)?)(?P<v4>[^\s\"'\\,}<>]+)"
)
_KEY_HEADER = (
    r"(?P<head>(?<![A-Za-z0-9])(?:x-api-key|api-key|x-auth-token|x-amz-security-token|x-hf-token|cookie"
    r"|set-cookie)(?:\\*[\"'])?\s*:\s*(?:\\*[\"'])?)(?P<v4>[^\s\"'\\,}<>]+)"
)
_BEARER = r"(?P<head>\bbearer[ \t]+)(?P<v4>(?=[\w.~+/-]*[0-9A-Z_.~+/])[\w.~+/-]{8,}=*|[\w.~+/-]{24,}=*)"
_USERINFO = r"(?P<head>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://)(?P<v4>[^\s/?#\"'<>]+)(?=@)"
_QUERY = (
    r"(?P<head>(?:[?&;]|&amp;|\\u0026)(?:x-amz-(?:signature|credential|security-token)"
    r"|x-goog-(?:signature|credential)|signature|sig|policy|key-pair-id|awsaccesskeyid|googleaccessid"
    r"|(?:access_|id_|refresh_|auth_|hf_)?token|api[-_]?key|apikey|key|auth|password|secret|client_secret"
    r"|code|x-xet-signed-range)=)(?P<v4>[^\s&;\"'<>#\\]+)"
)

# What follows a secret-sounding name in prose or help texts, and is no secret.
# fmt: off
_PROSE = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "cannot", "could", "do", "does",
        "expected", "expects", "failed", "for", "from", "has", "if", "in", "invalid", "is", "it", "its",
        "may", "missing", "must", "no", "none", "not", "null", "nil", "of", "on", "option", "or",
        "optional", "requires", "required", "set", "should", "than", "that", "the", "then", "this", "to",
        "true", "false", "undefined", "unset", "use", "used", "value", "via", "was", "when", "where",
        "which", "will", "with", "without", "you", "your", "argument", "flag",
    }
)
# fmt: on
_SCHEMES = ("bearer", "basic", "token", "digest", "apikey", "aws4-hmac-sha256")
_REFERENCE = lazy(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::?\?[^}]*)?(?:\}|\Z)|\((?:cat\b|<)?|\{\{)|%\w+%|\{\{")
_METAVAR = lazy(r"(?:[A-Z]+_)*(?:KEY|PASSWORD|TOKEN|SECRET)\Z")
_NUMBER = lazy(r"-?\d+(?:\.\d+)?\Z")
_PLACE_NAME = lazy(r"_(?:FILE|PATH|DIR|COUNT|LIMIT|LEN|SIZE|NUM|TTL|TIMEOUT|URL|NAME|TYPE)\Z")


@lru_cache(maxsize=32)
def _compiled(regex: str, flags: int) -> re.Pattern[str]:
    return re.compile(regex, flags)


def mask_secrets(text: str) -> str:
    """``text`` with every secret replaced by ``<hidden>``. Idempotent; other text stays as it is.

    In a shell ``<hidden>`` fails at once instead of starting a server with a key everybody knows.
    """
    # A masked secret can bare another one beside it; every round leaves less that is not masked.
    return replace_secrets(text, _hide)


def replace_secrets(text: str, put: Callable[[str, re.Match[str]], str]) -> str:
    """``mask_secrets`` with ``put(value, match)`` in place of each secret.

    What ``put`` gives must not look like a secret by itself, and begins with ``redacted-`` where it is not MASK.
    """
    while (masked := _mask_once(text, put)) != text:
        text = masked
    return text


def _hide(value: str, match: re.Match[str]) -> str:
    return MASK


def _mask_once(text: str, put: Callable[[str, re.Match[str]], str]) -> str:
    for place in _places_of(text):
        text = _compiled(place.regex, place.flags).sub(partial(_mask, place.keeps, put), text)
    if any(trigger in text for trigger in _SHAPE_TRIGGERS):
        text = _compiled(_SHAPE, 0).sub(lambda m: put(m[0], m), text)
    return text


def secret_values(texts: Iterable[str]) -> frozenset[str]:
    """Secrets named by their place anywhere in ``texts``, at least 8 characters long.

    A key that a command names may stand bare in another line; pass these to :func:`mask_values`.
    Plain words shorter than 16 letters are left out: masking them everywhere would eat ordinary text.
    """
    found: set[str] = set()
    for text in texts:
        for place in _places_of(text):
            for m in _compiled(place.regex, place.flags).finditer(text):
                value = _value(m)
                if len(value) >= 8 and MASK not in value and not place.keeps(m, value):
                    found.add(value)
    return frozenset(v for v in found if not v.isalpha() or len(v) >= 16)


def _places_of(text: str) -> list[_Place]:
    lowered = text.lower()
    return [p for p in _PLACES if any(t in (lowered if p.flags else text) for t in p.triggers)]


def mask_values(text: str, values: Iterable[str]) -> str:
    """``text`` with each of the known secret ``values`` masked, longest first."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def _value(m: re.Match[str]) -> str:
    groups = m.groupdict()
    return next((groups[g] for g in ("v1", "v2", "v3", "v4") if groups.get(g) is not None), "")


def _mask(
    keep: Callable[[re.Match[str], str], bool], put: Callable[[str, re.Match[str]], str], m: re.Match[str]
) -> str:
    value = _value(m)
    if not value or value == MASK or value.startswith(_PLACEHOLDER) or keep(m, value):
        return m[0]
    group = next(g for g in ("v1", "v2", "v3", "v4") if m.groupdict().get(g) is not None)
    start, end = m.start(group) - m.start(), m.end(group) - m.start()
    return m[0][:start] + put(value, m) + m[0][end:]


def _is_bare(m: re.Match[str]) -> bool:
    return m.groupdict().get("v4") is not None


def _reference(m: re.Match[str], value: str) -> bool:
    """A variable stands there, not its value (in single quotes a shell would not expand it)."""
    return m.groupdict().get("v3") is None and _REFERENCE.match(value) is not None


def _flag_keeps(m: re.Match[str], value: str) -> bool:
    if _reference(m, value):
        return True
    if not _is_bare(m):
        return False
    return value.startswith("--") or value.lower().strip(".:") in _PROSE or bool(_METAVAR.match(value))


def _keyword_keeps(m: re.Match[str], value: str) -> bool:
    if _reference(m, value) or value.lower() in ("none", "true", "false", "null"):
        return True
    if not _is_bare(m):
        return False
    if m["head"].rstrip().endswith(":"):
        return _loose(m, value)
    return bool(_METAVAR.match(value))


def _env_keeps(m: re.Match[str], value: str) -> bool:
    if _reference(m, value) or value.lower() in ("none", "null"):
        return True
    name = m["name"]
    if _PLACE_NAME.search(name):
        return True
    if "TOKEN" in name and (_NUMBER.match(value) or value.lower() in ("true", "false")):
        return not name.endswith("TOKEN") or len(value) < 6
    return _is_bare(m) and m["head"].rstrip().endswith(":") and _loose(m, value)


def _loose(m: re.Match[str], value: str) -> bool:
    """After a colon, a bare value counts as a secret only when nothing but a closer or comment follows."""
    rest = m.string[m.end() :].split("\n", 1)[0].strip()
    return value.lower() in _PROSE or not (rest == "" or rest[0] in ",}])#\"'")


def _header_keeps(m: re.Match[str], value: str) -> bool:
    has_scheme = m["head"].rstrip().lower().endswith(_SCHEMES)
    if _reference(m, value) or value.lower() in _SCHEMES:
        return True
    return not has_scheme and value.lower().strip(".") in _PROSE | {"header", "headers", "error"}


def _bearer_keeps(m: re.Match[str], value: str) -> bool:
    plain = value.rstrip(".")
    return plain.isalpha() and (plain.islower() or plain.istitle()) and len(plain) < 20


def _userinfo_keeps(m: re.Match[str], value: str) -> bool:
    return value in ("git", "hg", "svn") or _reference(m, value)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where secrets stand. ``triggers``: words of which one occurs in every match (lower case, unless the
    regex minds the case), so that it, slow to compile and to run, is only used on texts that can hold one."""

    regex: str
    triggers: tuple[str, ...]
    keeps: Callable[[re.Match[str], str], bool]  # True: what looks like a secret is none
    flags: int = re.IGNORECASE


_KEYS = ("key", "passw", "passphrase", "secret", "token", "credential")
_PLACES = (
    _Place(_USERINFO, ("@",), _userinfo_keeps),
    _Place(
        _QUERY,
        ("sig", "policy", "key", "token", "auth", "passw", "secret", "id=", "code=", "cred"),
        _reference,
    ),
    _Place(
        _FLAG, ("-api", "-admin-api", "keyfile-p", "-token", *(k for k in _KEYS if k != "token")), _flag_keeps
    ),
    _Place(_NAME_VALUE, ("PASSW", "SECRET", "TOKEN", "KEY"), _reference, 0),
    _Place(_ENV, tuple(k.upper() for k in _KEYS), _env_keeps, 0),
    _Place(_KEYWORD, ("_token", *(k for k in _KEYS if k != "token")), _keyword_keeps),
    _Place(_HEADER, ("authorization",), _header_keeps),
    _Place(_KEY_HEADER, ("-key", "-token", "cookie"), _header_keeps),
    _Place(_BEARER, ("bearer",), _bearer_keeps),
)

# Lower-case words of which one stands, in any case, in every text that ``mask_secrets`` changes: for streams that
# are too fast to be looked at line by line.
_GITHUB = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")  # "gh" alone stands in "weight" too
TRIGGERS = tuple(
    sorted(
        {
            t.lower()
            for t in (*_SHAPE_TRIGGERS, *_GITHUB, *(t for p in _PLACES for t in p.triggers))
            if t != "gh"
        }
    )
)
