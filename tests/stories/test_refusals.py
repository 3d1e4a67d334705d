"""Is a caller told what really stands in the way?"""

from __future__ import annotations

import pytest

from postdate import OverlapTaken, Reason, Status
from postdate.testing.scene import Scene


def test_an_unconfirmed_action_does_not_stand_in_the_way_of_its_own_retry(database_url: str) -> None:
    """Another one that holds its overlap key does, and is named."""
    with Scene.on(database_url) as scene:
        doubtful = scene.action(Status.FAILED, Reason.UNCONFIRMED, overlap_key="one at a time")
        holder = scene.action(overlap_key="one at a time")
        with pytest.raises(OverlapTaken) as refused:
            scene.app.sync.retry(doubtful.id)
        assert refused.value.existing == holder.id
        scene.app.sync.cancel(holder.id)
        assert scene.app.sync.retry(doubtful.id).status is Status.QUEUED
