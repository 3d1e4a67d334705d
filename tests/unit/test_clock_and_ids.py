"""Does time only ever count on from the database, and do ids rise?"""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import RFC_4122, UUID

import pytest

from postdate import clock as clock_module
from postdate.clock import TRUSTED_FOR, ManualClock, SystemClock
from postdate.errors import ClockUnset
from postdate.ids import TimeOrderedIds

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


class Monotonic:
    """Stands in for `time`, so that no test waits."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def clock_gettime(self, clock: int) -> float:
        assert clock == clock_module._BOOT_TIME
        return self.seconds


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    stand_in = Monotonic()
    monkeypatch.setattr(clock_module, "time", stand_in)
    return stand_in


def test_the_system_clock_counts_on_from_the_databases_time(monotonic: Monotonic) -> None:
    """SC33: the host's wall clock is never asked, so its steps change nothing."""
    clock = SystemClock()
    with pytest.raises(ClockUnset):
        clock.now()
    assert clock.is_stale
    clock.set(NOON)
    monotonic.seconds += 1.5
    assert clock.now() == NOON + timedelta(seconds=1.5)
    assert not clock.is_stale


def test_the_database_is_asked_again_after_a_minute(monotonic: Monotonic) -> None:
    clock = SystemClock()
    clock.set(NOON)
    monotonic.seconds += TRUSTED_FOR.total_seconds()
    assert clock.is_stale


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(NOON)
    clock.set(NOON + timedelta(days=1))
    assert clock.now() == NOON
    assert clock.advance(timedelta(minutes=-5)) == clock.now() == NOON - timedelta(minutes=5)
    assert clock.move_to(NOON) == NOON


def test_ids_are_uuids_of_version_7_that_tell_their_time() -> None:
    """P11; RFC 9562."""
    made = TimeOrderedIds()(NOON)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == int(NOON.timestamp() * 1000)


def test_ids_rise_within_a_process_even_when_the_clock_goes_back() -> None:
    new_id = TimeOrderedIds()
    made = [new_id(NOON - timedelta(seconds=n)) for n in range(5000)]
    assert made == sorted(set(made))


def test_ids_of_processes_that_were_forked_differ_within_a_millisecond() -> None:
    fork = multiprocessing.get_context("fork")
    new_id = TimeOrderedIds()
    made = {before := new_id(NOON)}
    told = fork.SimpleQueue()
    for _ in range(2):
        child = fork.Process(target=lambda: told.put(new_id(NOON)))
        child.start()
        made.add(each := told.get())
        assert each > before
        child.join(20)
    made.add(new_id(NOON))
    assert len(made) == 4


def test_ids_of_several_threads_never_collide() -> None:
    new_id = TimeOrderedIds()
    made: list[UUID] = []
    threads = [Thread(target=lambda: made.extend(new_id(NOON) for _ in range(2000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16_000
