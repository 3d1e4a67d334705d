"""Does the plan of the demo mean what it says?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from demo.plan import plan, write_csv
from postdate.domain.moment import moment

if TYPE_CHECKING:
    from pathlib import Path

# One of these hours happens twice in Lisbon and one in New York: wherever the reader sits, the demo works.
STARTS = [datetime(2027, 3, 14, 9, 0, 0, 123_456, UTC), datetime(2027, 10, 31, 0, 59, 59, tzinfo=UTC)]


@pytest.mark.parametrize("start", STARTS)
def test_every_wall_time_and_instant_means_the_moment_at_which_the_row_is_due(start: datetime) -> None:
    for row in plan(count=40, start=start, seconds=20, webhook_url="http://127.0.0.1:1"):
        meant = moment(row.cells["at"], tz=row.cells.get("tz"), gap="reject", fold="first", default_zone=lambda: None)
        assert meant.publish_at == row.due


def test_the_rows_are_spread_evenly_and_are_both_e_mails_and_webhooks_in_every_zone_and_none() -> None:
    rows = plan(count=40, start=STARTS[1], seconds=20, webhook_url="http://127.0.0.1:1")
    assert {after.due - before.due for before, after in pairwise(rows)} == {timedelta(milliseconds=500)}
    assert len({(row.cells["type"], row.cells.get("tz")) for row in rows}) == 8
    assert len({row.thing for row in rows}) == 40


def test_a_row_is_written_with_its_empty_cells(tmp_path: Path) -> None:
    file = tmp_path / "actions.csv"
    rows = plan(count=2, start=STARTS[1], seconds=2, webhook_url="http://127.0.0.1:1")
    write_csv(rows, file)
    header, _, webhook = file.read_text().splitlines()
    assert header == "type,at,tz,thing,to,subject,text,url"
    assert webhook == "call_webhook,2027-10-31T01:00:00.000+00:00,,demo-002,,,,http://127.0.0.1:1/orders/demo-002"
