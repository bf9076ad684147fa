"""Values that the name before them gives away: `password=…`, `"apiKey": "…"`, `--token …`, headers.

Written for what is met in logs and manifests: JSON (also escaped inside JSON), logfmt, YAML, environment and connection
strings, Go and Python dumps, colour codes, prose. Where a name is also a word of prose (`invalid token: expired`), the
value must look like a secret.
"""

from __future__ import annotations

import re
from typing import Final

from praxis.redaction.marker import REDACTED, marker

VALUE: Final = 64 * 1024
"""Longest value of one assignment that is not ended by its line, characters."""
LINES: Final = 4096
"""How far, in characters, the closing quote may be from the opening one when it is on another line."""

_WORDS = (
    r"password|passwd|passphrase|passcode|(?<![a-z])pwd|(?<=[_.-])pass|(?<=\")pass|credentials?|secret|token"
    r"|api[ _-]?key|(?:access|secret|private|account|shared|signing|encryption|master|ssh|auth|license|session)"
    r"[ _-]?(?:access[ _-]?)?key(?:[ _-]?(?:secret|data))?|client[ _-]?key[ _-]?data"
)
_SENSITIVE_KEY = re.compile(rf"(?i:(?:{_WORDS}|authorization|cookies?|dockercfg|dockerconfigjson))\Z")
_ESCAPED_END = r"\\{1,4}[nrt]"
"""A line end or tab in a string inside JSON, itself perhaps in JSON: a manifest or a dump that was logged."""
_ANSI = r"(?:\x1b\[[0-9;]{0,8}m){0,2}"
_ASSIGNMENT = re.compile(
    rf"(?i:(?P<word>{_WORDS}))(?P<quote>\\{{0,4}}[\"'`])?\]?{_ANSI}"
    rf"(?:[ \t]{{0,8}}(?P<sep>:=|=>|==?|:|%3D|%3A){_ANSI}"
    rf"(?:(?<=[:=])(?:\s|{_ESCAPED_END}){{1,64}}(?=\\{{0,4}}[\"'])|[ \t]{{0,8}}){_ANSI}"
    r"|(?P<is> {1,4}(?i:is|was|are) {1,4})|(?P<flag> {1,4}))"
)
_HEADER = re.compile(
    r"(?i:(?:proxy-)?(?P<word>authorization|(?:set-)?cookie))(?:\\{0,4}[\"'])?[ \t]{0,8}[:=][ \t]{0,8}"
    rf"(?:\[?\\{{0,4}}[\"'])?(?P<secret>[^\r\n\"'\\]{{1,{VALUE}}}+)"
)
_SCHEME = re.compile(r"(?i:\b(?:bearer|basic)) {1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,4096}+)")
_ENVIRONMENT = re.compile(
    r"(?i:(?:name|key)\\{0,4}[\"']?[ ]{0,4}[:=][ ]{0,4}\\{0,4}[\"']?[a-z0-9_.-]{0,64}?"
    rf"(?:{_WORDS}))\\{{0,4}}[\"']?"
    r"(?:[ ]{0,4},[ ]{0,4}|[ ]{0,4}(?:\r?\n|\\{1,4}n)[ \t]{0,64})"
    r"(?i:\\{0,4}[\"']?value\\{0,4}[\"']?[ ]{0,4}[:=][ ]{0,4})"
)
_UNQUOTED = re.compile(
    r"(?:(?![;&,][\w.-]{1,64}[\"']?[=:])(?!\\{0,4}[\"'`](?:[\s,;:}\])]|\Z))[^\s])++"  # whatever is read is left behind
)
_FLAG = re.compile(r"(?:\A|[\s\"'=\[,])--?[\w-]{0,48}\Z")
_OPENING = re.compile(r"\\{0,4}[\"'`]")
_STRING = {quote: re.compile(rf"(?:[^\\{quote}]|\\.){{0,{LINES}}}+", re.DOTALL) for quote in "\"'`"}
_KEY_OF_LINE = re.compile(r"(?:\A|\n)[ \t]{0,32}(?:- )?[\w.-]{0,48}\Z")
_MARKED = re.compile(rf"(?:{REDACTED.pattern})(?=[\s,;:&)\]}}\"'\\]|\.\s|\.?\Z)")
_BLOCK_SCALAR = re.compile(r"[|>][+-]?[0-9]?[ \t]{0,8}\r?(?P<end>\n|\\{1,4}n)[ \t]{1,64}")
_BENIGN = re.compile(
    r"(?i:null|nil|none|undefined|true|false|yes|no|<[a-z ]{1,24}>|\*{1,64}|x{3,64}"
    r"|\(?(?:empty|hidden|masked|redacted)\)?"
    r"|\[(?:redacted|filtered|hidden)\])|\$\{[A-Za-z0-9_.]{1,64}\}|\$\([A-Za-z0-9_.]{1,64}\)|\$[A-Z][A-Z0-9_]{1,64}|"
)
_PLAIN = re.compile(r"[A-Za-z]?[a-z]{0,40}(?:[-_./:][A-Za-z]?[a-z]{0,40}){0,16}[.,;:!?)\]}]{0,3}|[0-9][0-9.,:]{0,11}")


def without_named(text: str) -> str:
    """The text with a marker for each value whose name says that it is a secret."""
    text = _HEADER.sub(_header, text)
    text = _SCHEME.sub(lambda found: _hidden(found, "token") if _looks_secret(found["secret"]) else found[0], text)
    return _assigned(_ENVIRONMENT, _assigned(_ASSIGNMENT, text))


def sensitive_key(key: str) -> bool:
    """Whether what stands under this key is a secret: `dbPassword` is, `secretName` and `max_tokens` are not."""
    return _SENSITIVE_KEY.search(key[-64:]) is not None


def kept(value: str) -> bool:
    """Whether a value tells nothing: a marker, a placeholder, a reference to an environment variable."""
    return REDACTED.fullmatch(value) is not None or _BENIGN.fullmatch(value) is not None


def _hidden(found: re.Match[str], name: str) -> str:
    start = found.start("secret") - found.start()
    return found[0][:start] + marker(name) + found[0][start + len(found["secret"]) :]


def _header(found: re.Match[str]) -> str:
    words = REDACTED.sub("", found["secret"]).split()
    cookie = found["word"].lower() != "authorization"
    # An Authorization is a scheme and a token, or a token; more words are prose (`authorization: denied by …`).
    secret = any(_looks_secret(word) for word in (words if cookie else words[:2]))
    return _hidden(found, found["word"].lower()) if secret else found[0]


def _assigned(pattern: re.Pattern[str], text: str) -> str:
    """Replace the value after each name that `pattern` finds."""
    pieces, position = [], 0
    while found := pattern.search(text, position):
        start, end = _value(text, found)
        value = text[start:end]
        pieces.append(text[position:start])
        if value and not kept(value):
            value = marker(_name_of(found))
        pieces.append(value)
        position = max(end, found.end())
    return "".join([*pieces, text[position:]])


def _name_of(found: re.Match[str]) -> str:
    word = found.groupdict().get("word") or "value"
    return re.sub(r"[ _-]{1,2}", "-", word.lower())


def _value(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Where the value begins and ends; an empty one when it is to be left alone."""
    at, groups = found.end(), found.groupdict(default="")
    if groups.get("flag") and not _FLAG.search(text, max(0, found.start() - 64), found.start()):
        return at, at
    if opening := _OPENING.match(text, at):
        return opening.end(), _closing(text, opening.end(), opening[0])
    if block := _BLOCK_SCALAR.match(text, at):
        return block.end(), _end_of_block(text, found.start(), block.end(), block["end"])
    if _MARKED.match(text, at) or text.startswith("-" if groups.get("flag") else "\0", at):
        return at, at
    if groups.get("sep") == ":" and text[at : at + 1] in ("{", "["):
        return (at, at) if text[at] == "{" else _listed(text, at + 1)
    return _bare(text, found)


def _listed(text: str, start: int) -> tuple[int, int]:
    """The elements of a list."""
    if REDACTED.match(text, start):
        return start, start
    closing = text.find("]", start, start + VALUE)
    return start, closing if closing >= 0 else min(len(text), start + VALUE)


def _bare(text: str, found: re.Match[str]) -> tuple[int, int]:
    """A value without quotes: a word, or, behind a key that begins its line, the rest of the line."""
    at, groups = found.end(), found.groupdict(default="")
    word = _UNQUOTED.match(text, at)
    if not word or kept(word[0]):
        return at, at
    end = at + len(word[0].rstrip(")]},;"))
    if _only_a_word(text, found):
        return at, end if _looks_secret(text[at:end]) else at
    if groups.get("word", "").lower() == "pwd" and word[0][0] in "/~.":
        return at, at  # the shell's working directory
    if groups.get("sep") == ":" and not groups["quote"] and _begins_line(text, found.start()):
        return at, _end_of_line(text, at)
    return at, end


def _begins_line(text: str, position: int) -> bool:
    """Whether nothing but the beginning of a key stands between the line's start and here."""
    return _KEY_OF_LINE.search(text, max(0, position - 96), position) is not None


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    line = text[position : end if end >= 0 else len(text)]
    return position + len(line.rstrip())


def _closing(text: str, start: int, quote: str) -> int:
    """The end of a quoted value; without a closing quote (cut off) it reaches to the end of the line."""
    if len(quote) > 1:
        end = text.find(quote, start, start + LINES)
    else:
        string = _STRING[quote].match(text, start)
        end = string.end() if string and text.startswith(quote, string.end()) else -1
    return end if end >= 0 else _end_of_line(text, start)


def _end_of_block(text: str, key: int, start: int, line_end: str) -> int:
    """The end of a YAML block scalar: of the lines that are indented deeper than the line of its key."""
    before = text.rfind(line_end, max(0, key - 256), key)
    line = before + len(line_end) if before >= 0 else max(0, key - 256)
    indentation = len(text[line:key]) - len(text[line:key].lstrip(" \t-"))
    limit = min(len(text), start + VALUE)
    end = start
    while end < limit:
        stop = text.find(line_end, end, limit)
        stop = limit if stop < 0 else stop
        content = text[end:stop]
        if end > start and content.strip() and len(content) - len(content.lstrip(" \t")) <= indentation:
            return end - len(line_end)
        end = stop + len(line_end)
    return min(end, limit)


def _only_a_word(text: str, found: re.Match[str]) -> bool:
    """Whether the name may be part of a sentence (`invalid token: expired`) and not a key."""
    groups = found.groupdict()
    if groups.get("is"):
        return True
    before = text[found.start() - 1 : found.start()] if found.start() else "\n"
    word = (groups.get("word") or "").lower()
    return groups.get("sep") == ":" and not groups.get("quote") and word in _AMBIGUOUS and before in " \t("


_AMBIGUOUS = frozenset({"token", "secret", "credential", "credentials", "pwd"})


def _looks_secret(value: str) -> bool:
    return len(value) >= 6 and not kept(value) and _PLAIN.fullmatch(value) is None
