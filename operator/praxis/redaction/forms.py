"""Tokens that their own form gives away, and where that form is described. Data; knows no text around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from praxis.redaction.marker import REDACTED, marker

GITLEAKS: Final = "gitleaks v8, config/gitleaks.toml"


@dataclass(frozen=True)
class Rule:
    """A secret that its own form gives away. Only the group `secret`, where there is one, is replaced.

    `anchors` are literals of which a match holds at least one: a text without them is not searched.
    """

    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    source: str

    def applied(self, text: str) -> str:
        """The text with a marker for each match."""
        return self.pattern.sub(self._replaced, text)

    def _replaced(self, found: re.Match[str]) -> str:
        group = "secret" if "secret" in self.pattern.groupindex else 0
        if REDACTED.fullmatch(found[group]):
            return found[0]
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + marker(self.name) + found[0][end:]


def _rule(name: str, anchors: str, pattern: str, source: str = GITLEAKS) -> Rule:
    return Rule(name, tuple(anchors.split()), re.compile(pattern), source)


# The letter of an escaped line end is no part of the token after it: `\\nghp_…` in a JSON string.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_END = r"(?![A-Za-z0-9])"

RULES: Final = (
    _rule(
        "aws-key-pair",
        "AKIA ASIA",
        _START + r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])[^A-Za-z0-9+/\n]{1,8}+[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/])",
        "AWS IAM, credentials file",
    ),
    _rule("aws-access-key", "AKIA ASIA ABIA ACCA A3T", _START + r"(?:A3T[A-Z0-9]|A[KSB]IA|ACCA)[A-Z0-9]{16}" + _END),
    _rule(
        "alibaba-key-pair",
        "LTAI",
        _START + r"LTAI[A-Za-z0-9]{12,26}+[^A-Za-z0-9\n]{1,8}+[A-Za-z0-9]{30}" + _END,
        "Alibaba Cloud RAM, AccessKey.csv",
    ),
    _rule("alibaba-access-key", "LTAI", _START + r"LTAI[A-Za-z0-9]{12,26}" + _END),
    _rule(
        "alibaba-sts-token", "STS.", _START + r"STS\.[A-Za-z0-9]{16,64}" + _END, "Alibaba Cloud STS, AssumeRole answer"
    ),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _START + r"gh[pousr]_[A-Za-z0-9]{20,255}+"),
    _rule("github-token", "github_pat_", _START + r"github_pat_[A-Za-z0-9_]{20,255}+"),
    _rule(
        "gitlab-token",
        "glpat- glptt- gldt- glrt- glcbt- gloas- glsoat- glft- glimt- glagent- glffct-",
        _START + r"gl(?:pat|ptt|dt|rt|cbt|oas|soat|ft|imt|agent|ffct)-[A-Za-z0-9_.-]{16,255}+",
    ),
    _rule("slack-token", "xox xapp-", _START + r"(?:xox[a-z]|xapp)(?:\.xox[a-z])?-[A-Za-z0-9-]{10,255}+"),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{20,255}+)",
    ),
    _rule("stripe-key", "sk_ rk_ pk_", _START + r"[srp]k_(?:test|live|prod)_[A-Za-z0-9]{10,255}+"),
    _rule("webhook-secret", "whsec_", _START + r"whsec_[A-Za-z0-9+/=_-]{16,255}+", "Standard Webhooks; Stripe"),
    _rule(
        "model-api-key",
        "sk-",
        _START + r"sk-(?:(?:proj|svcacct|admin|ant|or|ws|lf)-[A-Za-z0-9_-]{16,255}+|[A-Za-z0-9]{20,255}+(?!-))",
        "OpenAI, Anthropic, OpenRouter, DashScope (Model Studio) key pages",
    ),
    _rule("google-api-key", "AIza", _START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("google-oauth", "GOCSPX- ya29.", _START + r"(?:GOCSPX-|ya29\.)[A-Za-z0-9_-]{20,1024}+"),
    _rule("npm-token", "npm_", _START + r"npm_[A-Za-z0-9]{36}" + _END),
    _rule("pypi-token", "pypi-AgE", _START + r"pypi-AgE[A-Za-z0-9_-]{30,1024}+"),
    _rule("rubygems-key", "rubygems_", _START + r"rubygems_[a-f0-9]{48}" + _END),
    _rule("docker-token", "dckr_", _START + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,255}+", "Docker Hub access tokens"),
    _rule(
        "azure-client-secret",
        "Q~",
        r"(?:(?<![A-Za-z0-9_~.-])|(?<=\\[nrt]))[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    ),
    _rule("digitalocean-token", "_v1_", _START + r"do[oprt]_v1_[a-f0-9]{64}" + _END),
    _rule("sendgrid-token", "SG.", _START + r"SG\.[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{16,64}+"),
    _rule("huggingface-token", "hf_", _START + r"hf_[A-Za-z0-9]{34}" + _END),
    _rule("vault-token", "hvs. hvb. hvr.", _START + r"hv[sbr]\.[A-Za-z0-9_-]{20,255}+"),
    _rule("grafana-token", "glsa_ glc_", _START + r"(?:glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,400}+)"),
    _rule("shopify-token", "shp", _START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + _END),
    _rule("telegram-token", ":AA", _START + r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
    _rule("databricks-token", "dapi", _START + r"dapi[a-f0-9]{32}(?:-[0-9])?" + _END),
    _rule("atlassian-token", "ATATT3 ATCTT3", _START + r"AT[AC]TT3[A-Za-z0-9_=-]{60,255}+"),
    _rule("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{20,64}+"),
    # `eyJ` is Base64 of `{"`: with a dot after it this is JOSE; `hbGci` ({"alg) and `0eXAi` ({"typ) say so alone.
    _rule(
        "jwt",
        "eyJ",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ(?:[A-Za-z0-9_-]{8,65536}+(?:\.[A-Za-z0-9_-]{0,65536}+){1,4}+"
        r"|(?:hbGci|0eXAi|raWQi)[A-Za-z0-9_=-]{8,65536}+)",
        "RFC 7515",
    ),
    _rule(
        "registry-auth",
        "eyJhdXRocyI6",
        r"eyJhdXRocyI6[A-Za-z0-9+/=]{8,65536}+",
        "Kubernetes, kubernetes.io/dockerconfigjson",
    ),
    # A password may hold `@` and, in what databases accept, `/`: the last `@` ends it.
    _rule(
        "password",
        "://",
        r"(?i:postgres|postgresql|mysql|mariadb|mongodb|mongodb\+srv|rediss?|amqps?|clickhouse|sqlserver|mssql|oracle)"
        r"(?:\+[A-Za-z0-9]{1,20})?://(?!\[REDACTED:)[^\s/?#:@\"'<>]{0,256}+:(?P<secret>[^\s\"'<>@][^\s\"'<>]{0,512})@",
        "RFC 3986 section 3.2.1",
    ),
    _rule(
        "password",
        "://",
        r"(?<=://)(?!\[REDACTED:)[^\s/?#:@\"'<>]{0,256}+:(?P<secret>[^\s/\"'<>]{1,512})@",
        "RFC 3986 section 3.2.1",
    ),
    _rule(
        "userinfo",
        "://",
        r"(?<=://)(?P<secret>(?=[^\s/@:]{0,256}[0-9])[^\s/?#:@\"'<>\[\]]{16,256})@",
        "RFC 3986 section 3.2.1",
    ),
    _rule(
        "password",
        "@tcp( @unix(",
        r"(?<![\w.-])[\w.-]{1,64}+:(?P<secret>[^\s\"'<>]{1,256})@(?:tcp|unix)\(",
        "go-sql-driver/mysql, DSN",
    ),
    _rule(
        "query-secret",
        "= %3D %3d",
        r"(?i)(?:[?&;]|%26|%3F|\\u0026)(?:sig|signature|key|auth|code|sas|x-(?:amz|goog|oss)-(?:signature|credential)"
        r"|ossaccesskeyid|awsaccesskeyid|googleaccessid)(?:=|%3D)"
        r"(?P<secret>(?!\[REDACTED:)(?:(?!%26)[^\s&#\"'<>\\;]){8,4096}+)",
        "RFC 6750 section 2.3; AWS SigV4, Azure SAS, OSS presigned URLs",
    ),
)


def without_tokens(text: str) -> str:
    """The text with a marker for each secret that its form gives away."""
    for rule in RULES:
        if any(anchor in text for anchor in rule.anchors):
            text = rule.applied(text)
    return text
