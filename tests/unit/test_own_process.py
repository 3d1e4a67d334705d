"""What is different in a process that does nothing but fire?"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest

from postdate.engine.own_process import set_up_process

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def as_before() -> Iterator[None]:
    turn = sys.getswitchinterval()
    yield
    sys.setswitchinterval(turn)
    gc.unfreeze()


@pytest.mark.usefixtures("as_before")
def test_its_threads_take_short_turns_and_the_collector_leaves_alone_what_there_is() -> None:
    set_up_process()
    assert sys.getswitchinterval() == pytest.approx(0.0001)
    assert gc.get_freeze_count() > 0
