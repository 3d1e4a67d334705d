"""What is a phone number?"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_BETWEEN_DIGITS = re.compile(r"[ ().-]")


def phone_number(value: str) -> str:
    """Return the number as `+351912345678`: with its country, without what people write between the digits (E.164).

    Raises ValueError with the rule.
    """
    number = _BETWEEN_DIGITS.sub("", value[:40])
    if not _E164.fullmatch(number):
        raise ValueError("must be a phone number with its country, such as +351912345678")
    return number


PhoneNumber = Annotated[str, AfterValidator(phone_number)]
