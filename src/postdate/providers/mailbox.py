"""What is an e-mail address, with or without a name before it?

The grammar is the part of RFC 5322 that people type: `ana@example.com`, `Ana <ana@example.com>`,
`"Perez, Ana" <ana@example.com>`. Quoted local parts, comments, groups and address literals are refused; so are
local parts beyond ASCII, which most servers cannot take. Domains beyond ASCII are kept in their ASCII form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.header import Header
from typing import Annotated

from pydantic import AfterValidator

from postdate.providers.host import host_name

MAX_LOCAL = 64
MAX_ADDRESS = 254
MAX_NAME = 100

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What would end a header line, or be no text at all."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_NAMED = re.compile(r'(?:"(?P<quoted>[^"\\<>]*)"|(?P<bare>[^"\\<>]*))\s*<(?P<address>[^<>]*)>')


@dataclass(frozen=True, kw_only=True)
class Mailbox:
    """An address and the name shown for it, which may be empty."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        """The bare address, in ASCII."""
        return f"{self.local}@{self.domain}"

    def __str__(self) -> str:
        """Return what `parse` reads back."""
        return f'"{self.name}" <{self.address}>' if self.name else self.address

    def header(self) -> str:
        """Return it as it stands in a header: ASCII, folded where the name is long (RFC 2047)."""
        return str(self) if self.name.isascii() else f"{encoded(self.name)} <{self.address}>"

    @classmethod
    def parse(cls, value: str) -> Mailbox:
        """Read a mailbox. Raises ValueError with the rule that it breaks."""
        if len(value) > MAX_NAME + MAX_ADDRESS + 10:  # quotes, brackets, blanks
            raise ValueError(f"must have at most {MAX_ADDRESS} characters of address and {MAX_NAME} of name")
        if CONTROL.search(value):
            raise ValueError("must not hold line breaks or other control characters")
        named = _NAMED.fullmatch(value.strip())
        address = named["address"] if named else value.strip()
        name = (named["quoted"] or named["bare"] or "").strip() if named else ""
        if len(name) > MAX_NAME:
            raise ValueError(f"must have at most {MAX_NAME} characters of name")
        local, at, domain = address.rpartition("@")
        if not at or not _LOCAL.fullmatch(local) or len(local) > MAX_LOCAL:
            raise ValueError("must be an e-mail address such as ana@example.com")
        mailbox = cls(name=name, local=local, domain=host_name(domain))
        if len(mailbox.address) > MAX_ADDRESS:
            raise ValueError(f"must have at most {MAX_ADDRESS} characters of address")
        return mailbox


def encoded(value: str, *, header_name: str = "") -> str:
    """Return text beyond ASCII as encoded words on lines of at most 76 characters (RFC 2047, 2)."""
    return Header(value, "utf-8", header_name=header_name, maxlinelen=76).encode(linesep="\r\n")


def _mailbox(value: str) -> str:
    return str(Mailbox.parse(value))


MailboxText = Annotated[str, AfterValidator(_mailbox)]
"""A mailbox in a payload: text, in the spelling that `Mailbox` gives it."""
