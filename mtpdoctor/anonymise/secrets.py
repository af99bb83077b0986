"""Secrets: what ``mtpdoctor.redact`` masks, and more forms of them, since a bundle leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from mtpdoctor.anonymise.words import words
from mtpdoctor.patterns import lazy
from mtpdoctor.redact import TRIGGERS, replace_secrets

Put = Callable[[str, int], str]  # value, line -> what stands there instead

_Q = r"(?:\\*[\"'])?"
_KEYS = (
    r"account[_-]?key|shared_?access_?(?:key|signature)|access[_-]?key(?:_?id)?|secret_?access[_-]?key|secret[_-]?key|client_?secret"
    r"|(?:session|auth|access|refresh|bearer|hf|hub|csrf|xsrf|personal|api|app|bot|deploy|push|pull|security|wandb|github|gitlab"
    r"|id)_?token|private[_-]?key|(?:pg|mysql_?|db_?|redis_?|ssh_?|root_?|user_?|admin_?|smtp_?|ldap_?|proxy_?|http_?)?"
    r"(?:password|passwd|passphrase|passwort|pwd)|sshpass|encryption[_-]?key|signing[_-]?key|master[_-]?key|license[_-]?key|webhook_?secret"
    r"|secret|storage[_-]?key|connection_?string|api[_-]?key|hmac[_-]?key|service_?account[_-]?key|subscription[_-]?key"
)
# the secret is the group "s"
_BY_PLACE = tuple(
    lazy(p, f)
    for p, f in (
        (
            rf"(?<![A-Za-z0-9])(?:{_KEYS}){_Q}(?:\s?(?:=|:=|=>|:)[ \t]*(?P<q>\\*[\"'])(?P<s>[^\n]*?)(?P=q)|=(?P<s2>[^\s\"'&;,)\]}}]+)"
            rf"|:[ \t]+(?P<s3>[^\s\"',;]+)[ \t]*$|:[ \t]+(?P<s4>(?=[^\s\"',;]*\d)[^\s\"',;]{{8,}}))",
            re.I | re.M,
        ),
        (r"(?<![A-Za-z_])token\\*[\"']?\s*(?:[=:]|is)\s*\\*[\"']?(?P<s>(?=[\w.-]*\d)[A-Za-z0-9_.~+/-]{12,}=*)", re.I),
        (r"\b(?:set-)?cookie\\*[\"']?\s*:\s*\\*[\"']?(?P<s>[^\n\"'\\]+)", re.I),
        (r"(?<![\w-])(?:-u|--user|--proxy-user|--userpwd)[ =]\\*[\"']?[^\s:\"']+:(?P<s>[^\s\"']+)", 0),
        (r"\blogin\s+\S+\s+password\s+(?P<s>\S+)", re.I),
        (r"\bsshpass\s+-p\s*\\*[\"']?(?P<s>[^\s\"']+)", 0),
        (r"\b(?:docker|podman|helm|oc|az|huggingface-cli|hf|wandb) (?:registry |auth )?login\b[^\n]*?(?:-p|--password|--token|--relogin)[ =]\\*[\"']?(?P<s>[^\s\"']+)", 0),
        (r"\bhooks\.slack\.com/(?:services|workflows)/(?P<s>[\w/-]+)", 0),
        (r"\bdiscord(?:app)?\.com/api/webhooks/(?P<s>[\w/-]+)", 0),
        (r"\b(?:Signature|Credential)=(?P<s>[\w/%+.=-]{16,})", re.I),
        (r"[?&;](?:amp;)?(?:x-amz-\w+-?\w*|x-goog-\w+-?\w*|sig|signature|se|sp|sv|skoid|sktid|st|spr|skt|ske|sks|skv|expires|ossaccesskeyid"
         r"|security-token|q-sign-algorithm|q-ak|q-signature)=(?P<s>(?=[^\s&\"'<>;\\]*\d)[^\s&\"'<>;\\]{16,})", re.I),
        (r"\bssh-(?:rsa|ed25519|dss) (?P<s>AAAA[\w+/]{30,}=*)", 0),
    )
)  # fmt: skip
_BY_SHAPE = lazy(
    r"(?<![A-Za-z0-9_])(?P<s>LS0tLS1CRUdJTi[\w+/]{16,}=*|(?:xai-|gsk_|r8_|[spr]k_(?:live|test)_|whsec_|lin_api_|dop_v1_|shpat_|hvs\.|tskey-[a-z]+-|dapi|nfp_|rnd_|fw_"
    r"|pplx-|tgp_v1_|LTAI|AKID|ATATT3|SG\.|glsa_|glc_|hvb\.|ops_)[\w.=-]{16,})"
)
_PLACEHOLDERS = lazy(
    r"(?i)(?:<[^>]*>|\*+|x{3,}|\.{3}|none|null|true|false|\d{1,5}|\$.*|\{\{.*|%\w+%|redacted-.*)$"
)
# what is left of a secret with "&" in it, behind its placeholder
_REST = lazy(
    r"(?<=redacted-secret-\d)&(?!&)[^\s=&;'\"]+(?=\s|$)|(?<=redacted-secret-\d\d)&(?!&)[^\s=&;'\"]+(?=\s|$)"
)
_PEM = lazy(r"-----BEGIN [A-Z0-9 ]+-----")
_PEM_END = "-----END "
_PEM_BODY = lazy(r"[A-Za-z0-9+/=]{4,}(?=(?:\\n|[\s\"'},|│])*$)")
_PEM_WHOLE = lazy(r"-----BEGIN [A-Z0-9 ]+-----.*?-----END [A-Z0-9 ]+-----")
_LONGEST_PEM = 400  # lines
_TRIGGERS = lazy("|".join(map(re.escape, (*TRIGGERS, "cookie", "pwd", "login", "amz", "goog", "sshpass", "webhook", "hooks.", "ssh-", " -u", "-user", "signature",
    "ls0tls1crudj", "connectionstring", "passwort", "&se", "expires", *("xai-", "gsk_", "r8_", "_live_", "_test_", "whsec_", "lin_api_", "dop_v1_", "shpat_", "hvs.", "tskey-", "dapi", "nfp_",
    "rnd_", "fw_", "pplx-", "tgp_v1_", "ltai", "akid", "atatt3", "sg.", "glsa_", "glc_", "hvb.", "ops_")))))  # fmt: skip
SECRET_NAME = lazy(rf"(?:\w+[_-])*(?:{_KEYS})|(?:[A-Z0-9]+_)*(?:TOKEN|PASSWORD|SECRET|API_?KEY)", re.I)


def replace_all(lines: list[str], put: Put, clean: set[str]) -> list[str]:
    """The lines with their secrets replaced; as many lines as before.

    ``put`` is given each secret and its line (from 1). ``clean`` collects the stretches of text that hold none,
    so that they are not looked at again.
    """
    lines = _without_pem(lines, put)
    out = list(lines)
    for first, last in _chunks(lines):
        chunk = "\n".join(lines[first:last])
        if chunk in clean:
            continue
        replaced = _replace(chunk, first + 1, put)
        if replaced == chunk:
            clean.add(chunk)
            continue
        changed = replaced.split("\n")
        if len(changed) == last - first:
            out[first:last] = changed
        else:  # cannot be told line by line: each for itself
            out[first:last] = [
                _replace(line, first + i + 1, put).replace("\n", " ")
                for i, line in enumerate(lines[first:last])
            ]
    return out


def _replace(chunk: str, line: int, put: Put) -> str:
    def at(m: re.Match[str], start: int) -> int:
        return line + m.string.count("\n", 0, start)

    def by_place(m: re.Match[str]) -> str:
        group = m.lastgroup if m.lastgroup and m.lastgroup.startswith("s") else "s"
        value = m[group]
        if not value or _PLACEHOLDERS.match(value) or value.startswith(("redacted-", "/", "./")):
            return m[0]
        if value.lower() in _WORDS or "redacted-" in value:
            return m[0]
        start, end = m.start(group) - m.start(), m.end(group) - m.start()
        return m[0][:start] + put(value, at(m, m.start(group))) + m[0][end:]

    def found(value: str, m: re.Match[str]) -> str:
        return value if value == "*" * len(value) else put(value, at(m, m.start()))  # SGLang's own mask

    chunk = replace_secrets(chunk, found)
    for pattern in _BY_PLACE:
        chunk = pattern.sub(by_place, chunk)
    return _REST.sub("", _BY_SHAPE.sub(by_place, chunk))


_WORDS = words(
    "required missing invalid expected not is set unset the a an optional empty incorrect wrong argument flag str option"
)


def _chunks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Ranges of lines worth a look: those with a word that secrets stand by, and two more (a value may stand on
    the next line)."""
    start, end = 0, 0
    for i, line in enumerate(lines):
        low = line.lower()
        if " batch" in low:  # "#new-token: 1, token usage: 0.01": hours of them
            low = low.replace("token", "")
        if _TRIGGERS.search(low):
            if i > end or i - start > 200:
                if end > start:
                    yield start, end
                start = max(i, end)
            end = min(i + 3, len(lines))
    if end > start:
        yield start, end


def _whole_blocks(line: str, number: int, put: Put) -> str:
    return _PEM_WHOLE.sub(lambda m: put(m[0], number), line)


def _without_pem(lines: list[str], put: Put) -> list[str]:
    if not any("-----BEGIN " in line for line in lines):
        return lines
    out: list[str] = []
    key, since = "", 0
    for number, line in enumerate(lines, 1):
        if "-----BEGIN " in line:
            line = _whole_blocks(line, number, put)
            m = _PEM.search(line)
            if m:
                block = "\n".join(lines[number - 1 : number + 2])
                key, since = put(block, number), number
                rest = line[m.end() :]
                line = line[: m.start()] + key + ("" if not rest.strip("\\nr\"' ,}|│") else rest)
                line = _PEM_BODY.sub(key, line) if rest.strip("\\nr\"' ,}|│") else line
        elif key:
            if _PEM_END in line:
                line, key = re.sub(r"(?:\S*)-----END [A-Z0-9 ]+-----", key, line), ""
            elif number - since > _LONGEST_PEM or not _PEM_BODY.search(line):
                if line.strip() and not re.search(r"[A-Z][\w-]+: ", line):
                    key = ""
            else:
                line = _PEM_BODY.sub(key, line)
        out.append(line)
    return out
