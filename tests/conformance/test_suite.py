"""Does the suite notice a database that lacks one of our triggers?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.states import Reason, Status
from postdate.testing.conformance import Fixtures
from postdate.testing.conformance.cases.deletion import DeletionCases
from postdate.testing.conformance.cases.frozen import FrozenCases
from postdate.testing.conformance.cases.guard import PublishGuardCases
from postdate.testing.conformance.cases.pauses import PauseCases
from postdate.testing.conformance.cases.view import ViewCases

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

PUBLISHED = (Status.PUBLISHED, None)
FAILED = (Status.FAILED, Reason.REJECTED)

# the trigger, its table, the case that has to fail without it, and what else that case takes
TRIGGERS: list[tuple[str, str, Callable[..., Any], tuple[Any, ...]]] = [
    ("queue_guard", "queue", PublishGuardCases().test_the_view_and_the_queue_itself_refuse_it, PUBLISHED),
    ("queue_guard", "queue", PublishGuardCases().test_a_failed_sibling_cannot_be_retried, PUBLISHED),
    ("actions_frozen", "actions", FrozenCases().test_an_actions_row_is_never_updated, ()),
    ("action_events_frozen", "action_events", FrozenCases().test_history_is_append_only, ()),
    (
        "postdate_workspaces_deleted",
        "workspaces",
        DeletionCases().test_deleting_an_owner_removes_its_actions_wherever_they_stand,
        ("workspace",),
    ),
    (
        "postdate_profiles_deleted",
        "profiles",
        DeletionCases().test_deleting_an_owner_removes_its_actions_wherever_they_stand,
        ("profile",),
    ),
    (
        "postdate_pauses_deleted",
        "workspaces",
        PauseCases().test_deleting_a_workspace_deletes_its_pauses_and_quiet_hours_and_nobody_elses,
        (),
    ),
    ("ended_pauses_frozen", "ended_pauses", PauseCases().test_the_record_of_ended_pauses_is_append_only, ()),
    ("postdate_profiles_deleted", "profiles", DeletionCases().test_the_system_profile_cannot_be_deleted, ()),
    ("scheduled_actions_update", "scheduled_actions", ViewCases().test_every_edit_of_every_column_is_refused, FAILED),
    ("scheduled_actions_delete", "scheduled_actions", ViewCases().test_a_row_is_never_deleted, FAILED),
]


class TestWithoutATrigger(Fixtures):
    @pytest.mark.parametrize(("trigger", "table", "case", "given"), TRIGGERS)
    def test_a_case_fails(
        self,
        scene: Scene,
        outsider: Outsider,
        trigger: str,
        table: str,
        case: Callable[..., Any],
        given: tuple[Any, ...],
    ) -> None:
        outsider.run(f"drop trigger {trigger}" if outsider.is_sqlite else f"drop trigger {trigger} on {{ns}}{table}")
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            case(scene, outsider, *given)
