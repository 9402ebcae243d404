"""Which part of a mail's plain text is new. Conservative: when in doubt everything stays.

Cut are a quoted mail at the end (with the line that introduces it) and a signature behind `-- `. Kept are forwards, answers between quotes,
and every text of which nothing would remain. One pass over the lines, no pattern over more than one; so the time is linear.
"""

from __future__ import annotations

import re

MAX_QUOTE_CHARS = 200_000
"""A longer text is not looked at: it stays whole."""

_LONGEST_INTRODUCTION = 300
_SIGNATURE_LINES = 15

_WROTE = re.compile(
    r"(?:\b(?:wrote|writes|schrieb|skrev|kirjoitti|napsal\(a\)|napisał\(a\)|napisał|escribió|escreveu|ha scritto|a écrit|schreef|geschreven)\b"
    r"|写道|のメール|님이 작성)[^:：\n]{0,120}[:：]\s*$",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"^\W{0,3}(?:on|am|le|el|em|il|den|op|på|ma|ti|ke|to|pe|la|su|dne|dnia|w dniu|em|den|lø|fre|man|tir|ons|tor|søn|sön|lör|mån|tis|"
    r"mon|tue|wed|thu|fri|sat|sun|\d{1,4})\b|<?[\w.+-]+@[\w.-]+>?",
    re.IGNORECASE,
)
_DATE_OR_ADDRESS = re.compile(r"\d{1,4}|@")
_FIELDS = {
    "from": "from|von|de|fra|från|da|van|lähettäjä|od|发件人|差出人",
    "sent": "sent|date|gesendet|datum|envoyé|enviado|enviado el|sendt|skickat|inviato|data|fecha|dato|verzonden|lähetetty|odesláno|wysłano|发送时间|送信日時",
    "to": "to|an|à|para|til|till|a|aan|vastaanottaja|komu|do|收件人|宛先",
    "subject": "subject|betreff|objet|asunto|assunto|emne|ämne|oggetto|onderwerp|aihe|předmět|temat|主题|件名",
}
_FIELD = re.compile(
    r"^[>*\s]{0,8}(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _FIELDS.items()) + r")\s?\*{0,2}\s?[:：]",
    re.IGNORECASE,
)
_ORIGINAL = re.compile(
    r"^\s*[-_]{2,}\s*(?:original (?:message|appointment)|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|"
    r"oprindelig meddelelse|opprinnelig melding|ursprungligt meddelande|messaggio originale|oorspronkelijk bericht)\s*[-_]{2,}\s*$",
    re.IGNORECASE,
)
_FORWARD = re.compile(
    r"^\W{0,12}(?:begin forwarded message|forwarded message|forwarded by|weitergeleitete nachricht|anfang der weitergeleiteten|message transféré|"
    r"début du message (?:transféré|réexpédié)|mensaje reenviado|mensagem encaminhada|videresendt (?:melding|meddelelse)|vidarebefordrat meddelande|"
    r"messaggio inoltrato|doorgestuurd bericht|välitetty viesti|fwd:)",
    re.IGNORECASE | re.MULTILINE,
)
_REPLY_SUBJECT = re.compile(
    r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:re|aw|sv|vs|antw|odp|rif|res|ref|r|ynt|atb)\s?(?:\[\d+\])?\s?[:：]", re.IGNORECASE
)
_FORWARD_SUBJECT = re.compile(r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:fwd?|wg|tr|rv|enc|i|doorst|vl|vb|pd)\s?:", re.IGNORECASE)


def is_forward(subject: str, text: str) -> bool:
    """Whether the mail passes another one on, by its subject or by a mark in the text."""
    return bool(_FORWARD_SUBJECT.match(subject) or _FORWARD.search(text[:MAX_QUOTE_CHARS]))


def is_reply(subject: str) -> bool:
    return bool(_REPLY_SUBJECT.match(subject))


def new_text(subject: str, text: str, *, answers: bool = False) -> tuple[str, str]:
    """(what is new, how it was cut: "" if nothing was). The words: attribution, header_block, original_message, quoted_tail, signature.

    `answers`: the mail's headers say that it is a reply. Only a reply ends in a quote that is not marked line by line.
    """
    if len(text) > MAX_QUOTE_CHARS or is_forward(subject, text):
        return text, ""
    lines = text.split("\n")
    end, how = _quote_start(lines, answers or is_reply(subject))
    signature = _signature_start(lines[:end])
    methods = [how] if how else []
    if signature < end:
        end = signature
        methods.append("signature")
    kept = "\n".join(lines[:end]).strip()
    if not methods or not kept or _only_header(kept):
        return text, ""
    return kept, "+".join(methods)


def _quote_start(lines: list[str], answers: bool) -> tuple[int, str]:
    for index, line in enumerate(lines):
        if answers and _ORIGINAL.match(line):
            return index, "original_message"
        if answers and _header_block(lines, index):
            # Outlook draws a line above the block.
            above = index - 1 if index and re.match(r"^\s*_{10,}\s*$", lines[index - 1]) else index
            return above, "header_block"
        length = _introduction(lines, index)
        if length and _quote_follows(lines, index, index + length):
            return index, "attribution"
    tail = _quoted_tail(lines)
    return (tail, "quoted_tail") if tail < len(lines) else (len(lines), "")


def _header_block(lines: list[str], index: int) -> bool:
    """Three of From, Sent, To, Subject within six lines, From first, each field once."""
    first = _FIELD.match(lines[index][:200])
    if first is None or not first["from"]:
        return False
    seen: set[str] = set()
    for line in lines[index : index + 7]:
        match = _FIELD.match(line[:200])
        if match:
            seen |= {name for name, value in match.groupdict().items() if value}
        elif not line.strip() and len(seen) > 1:
            break
    return len(seen) >= 3


def _introduction(lines: list[str], index: int) -> int:
    """How many lines (1 to 3) introduce a quote here, "On … Ann wrote:"; 0 if none do."""
    if lines[index].lstrip().startswith(">") or not _INTRODUCES.search(lines[index][:120]):
        return 0
    joined = ""
    for count, line in enumerate(lines[index : index + 3], start=1):
        if not line.strip():
            return 0
        joined = f"{joined} {line.strip()}"
        if len(joined) > _LONGEST_INTRODUCTION:
            return 0
        if _ends_introduction(joined):
            return count
    return 0


def _ends_introduction(joined: str) -> bool:
    return bool(joined.endswith((":", "：")) and _WROTE.search(joined) and _DATE_OR_ADDRESS.search(joined))


def _quote_follows(lines: list[str], start: int, body: int) -> bool:
    """Only quoted lines to the end; or, where the mailer marks none, an address in the introduction vouches for it."""
    while body < len(lines) and not lines[body].strip():
        body += 1
    if body < len(lines) and lines[body].lstrip().startswith((">", "|")):
        return _all_quoted(lines, body)
    return body == len(lines) or "@" in "".join(lines[start:body])


def _all_quoted(lines: list[str], start: int) -> bool:
    """Quoted up to a signature; one unquoted line may be the wrapped end of a quoted one."""
    for index in range(start, len(lines)):
        line = lines[index]
        if not line.strip() or line.lstrip().startswith((">", "|")):
            continue
        if line.rstrip() == "--" and len(lines) - index <= _SIGNATURE_LINES:
            return True
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if len(lines[index - 1]) <= 60 or not following.lstrip().startswith(">"):
            return False
    return True


def _quoted_tail(lines: list[str]) -> int:
    """Where the last block of `>` lines starts if nothing but blank lines follows it and nothing quoted stands before it."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith(">")):
        end -= 1
    if any(line.lstrip().startswith(">") for line in lines[:end]) or not any(line.strip() for line in lines[end:]):
        return len(lines)
    return end


def _signature_start(lines: list[str]) -> int:
    for index in range(len(lines) - 1, max(-1, len(lines) - 1 - _SIGNATURE_LINES), -1):
        if lines[index].rstrip() == "--":
            return index
    return len(lines)


def _only_header(kept: str) -> bool:
    return all(_FIELD.match(line[:200]) or not line.strip() for line in kept.split("\n"))
