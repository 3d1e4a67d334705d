"""Which e-mails may be scheduled, and do they all survive being written?"""

from __future__ import annotations

import re
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from postdate.errors import InvalidPayload
from postdate.providers.mail import MAX_LINE, SendEmail, written
from postdate.providers.mailbox import Mailbox
from postdate.registry import ActionType
from tests.surfaces.providers.contexts import NOW

MAIL: dict[str, Any] = {"to": "ana@example.com", "subject": "Hello", "text": "Hi"}
SEND_EMAIL = ActionType(name="send_email", handler=print, payload=TypeAdapter(SendEmail))


@pytest.mark.parametrize(
    ("given_as", "kept_as"),
    [
        ("ana@example.com", "ana@example.com"),
        (" Ana.Perez+x@EXAMPLE.com ", "Ana.Perez+x@example.com"),
        ("Ana <ana@example.com>", '"Ana" <ana@example.com>'),
        ('"Perez, Ana"   <ana@example.com>', '"Perez, Ana" <ana@example.com>'),
        ("<ana@example.com>", "ana@example.com"),
        ("Ünal <info@bücher.example>", '"Ünal" <info@xn--bcher-kva.example>'),
        ("root@localhost", "root@localhost"),
    ],
)
def test_an_address_is_kept_in_one_spelling_that_reads_back_as_itself(given_as: str, kept_as: str) -> None:
    assert str(Mailbox.parse(given_as)) == kept_as
    assert str(Mailbox.parse(kept_as)) == kept_as


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ana",
        "ana@",
        "@example.com",
        "ana@example.com\r\nBcc: eve@example.com",
        "Ana\nBcc: eve@example.com <ana@example.com>",
        "ana@example.com, eve@example.com",
        "ana@example.com eve@example.com",
        "Ana <ana@example.com> <eve@example.com>",
        'A"na <ana@example.com>',
        '"quoted local"@example.com',
        "añb@example.com",
        ".ana@example.com",
        "a..na@example.com",
        "ana@[127.0.0.1]",
        "ana@exa mple.com",
        "ana@-example.com",
        "ana@example..com",
        "a" * 65 + "@example.com",
        "ana@" + "e" * 64 + ".com",
        "ana@" + ".".join(["e" * 60] * 5),
        "a" * 64 + "@" + ".".join(["e" * 60] * 4),
        "n" * 101 + " <ana@example.com>",
        "ana@" + "\u0378" * 10,
        "x" * 100_000,
    ],
)
def test_what_is_no_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        SEND_EMAIL.dump({**MAIL, "to": ["ok@example.com", address]})
    assert refused.value.field == "payload.to.1"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"to": []}, "payload.to"),
        ({"to": None}, "payload.to"),
        ({"subject": "two\r\nBcc: eve@example.com"}, "payload.subject"),
        ({"subject": "two\u2028lines"}, "payload.subject"),
        ({"subject": "x" * (MAX_LINE + 1)}, "payload.subject"),
        ({"headers": {"X-A": "1\nBcc: eve@example.com"}}, "payload.headers.X-A"),
        ({"headers": {"X-A": "x" * (MAX_LINE + 1)}}, "payload.headers.X-A"),
        ({"headers": {"X-A: 1\r\nBcc": "eve@example.com"}}, "payload.headers"),
        ({"headers": {"": "x"}}, "payload.headers"),
        ({"headers": {"bcc": "eve@example.com"}}, "payload.headers"),
        ({"headers": {"Content-Type": "text/html"}}, "payload.headers"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "payload.headers"),
        ({"headers": {f"X-{n}": "" for n in range(51)}}, "payload.headers"),
        ({"text": None}, "payload"),
        ({"cc": [f"u{n}@example.com" for n in range(100)]}, "payload"),
        ({"subjekt": "typo"}, "payload.subjekt"),
        ({"thing_id": ""}, "payload.thing_id"),
    ],
)
def test_a_payload_that_cannot_be_sent_is_refused_when_it_is_scheduled(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        SEND_EMAIL.dump({**MAIL, **change})
    assert refused.value.field == field


def test_what_is_stored_is_what_is_sent_later() -> None:
    stored = SEND_EMAIL.dump(SendEmail(to=["Ana <ana@example.com>"], subject="Hello", text="Hi"))
    assert "thing_id" not in stored, "a thing left out is no thing"
    assert SEND_EMAIL.dump(SEND_EMAIL.load(stored)) == stored
    assert SEND_EMAIL.dump({**MAIL, "thing_id": "receipt-1"})["thing_id"] == "receipt-1"


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029"), max_size=200)
NAMES = TEXT.map(lambda name: name[:100]).filter(lambda name: not set(name) & set('"\\<>'))


@given(
    subject=TEXT,
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300),
    names=st.lists(NAMES, min_size=1, max_size=5),
    header=TEXT,
)
def test_every_email_that_may_be_scheduled_can_be_written_and_nothing_slips_in(
    subject: str, text: str, names: list[str], header: str
) -> None:
    to = [f'"{name}" <u{n}@example.com>' for n, name in enumerate(names)]
    mail = SendEmail(to=to, subject=subject, text=text, headers={"X-Note": header})
    raw = written(mail, sender=Mailbox.parse(to[0]), message_id="<1@example.com>", date=NOW)
    message = message_from_bytes(raw, policy=default)
    assert message.keys() == [
        *("From", "To", "Subject", "Date", "Message-ID", "X-Note"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    ]
    assert [each.addr_spec for each in message["To"].addresses] == mail.recipients
    assert max(len(line) for line in raw.split(b"\r\n")) <= 998
    assert all(len(word) <= 75 for word in re.findall(rb"=\?utf-8\?\S+\?=", raw)), "RFC 2047, 2"
    assert message.get_content().split() == text.split()
    if "=?" not in subject:
        assert message["Subject"].split() == subject.split()


def test_a_list_of_addresses_may_be_left_out_for_a_single_one() -> None:
    assert SendEmail.model_validate(MAIL).to == ["ana@example.com"]
    with pytest.raises(ValidationError):
        SendEmail.model_validate({**MAIL, "to": [["ana@example.com"]]})
