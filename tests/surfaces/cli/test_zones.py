"""How does a person see from a shell which wall times have shifted, and decide?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell

LISBON = "Europe/Lisbon"
NINE = "2098-07-01T09:00"


def test_a_check_lists_what_has_shifted_and_two_commands_decide(postdate: Shell, tmp_path: Path) -> None:
    follows, pinned = (postdate.reminder("--tz", LISBON, at=NINE) for _ in range(2))
    quiet = postdate.done("zones", "check")
    assert (quiet.out, "looked at 2: nothing has shifted" in quiet.err) == ("", True)
    with rules_in_force(tmp_path, "2099a", {LISBON: "WET0"}):
        told = postdate.done("zones", "check", "--json")
        assert {each["id"] for each in told.json_lines} == {follows, pinned}
        assert {(each["publish_at"], each["means"], each["course"], each["doubt"]) for each in told.json_lines} == {
            ("2098-07-01T08:00:00Z", "2098-07-01T09:00:00Z", "follow", None)
        }
        assert "zone rules 2099a (the queue was never gone over by the engine); looked at 2: follow 2" in told.err
        (line,) = postdate.done("zones", "check", "--limit", "1").lines
        assert line.endswith(
            f"reminder {NINE} in {LISBON}: due 2098-07-01T08:00:00Z, means 2098-07-01T09:00:00Z: follow"
        )
        moved = postdate.done("zones", "follow", follows, "--actor", "ana", "--json").json
        assert (moved["publish_at"], moved["replaces_id"]) == ("2098-07-01T09:00:00Z", follows)
        assert "queued, due 2098-07-01T08:00:00Z" in postdate.done("zones", "pin", pinned).out
        assert "looked at 2: pin 1" in postdate.done("zones", "check").err
        postdate.done("tick", "--types", "reminder")
        assert "(the queue was gone over by 2099a)" in postdate.done("zones", "check").err


def test_what_cannot_be_decided_about_is_refused(postdate: Shell) -> None:
    instant = postdate.reminder()
    answer = postdate("zones", "pin", instant)
    assert (answer.code, answer.err) == (
        2,
        f"postdate: action: must have been scheduled by a wall time (got '{instant}')\n",
    )
    assert postdate("zones", "follow", "0193e000-0000-7000-8000-000000000000").code == 3
    assert postdate("zones", "check", "--workspace", "none").code == 2
