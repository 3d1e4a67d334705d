"""Can whatever other programs get in be read, run and moved?

One row that nobody could read would hold up every list, and every claim of its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from postdate.domain.states import Status
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

PAYLOADS = {
    "with blanks": ' {"thing_id" : "a" , "n" : 1.50 } ',
    "an escaped emoji": '{"thing_id": "\\ud83d\\ude00"}',
    "an escape that only looks like NUL": '{"thing_id": "\\\\u0000"}',
    "a thing spelt with an escape": '{"thing\\u005fid": "c"}',
    "a tab as it is": '{"n": "a\tb"}',
    "a thing told twice": '{"thing_id": "a", "thing_id": "b"}',
    "a name told twice": '{"n": 1, "n": 2}',
    "NUL": '{"n": "a\\u0000b"}',
    "NUL in the thing": '{"thing_id": "a\\u0000b"}',
    "NUL after a backslash": '{"n": "\\\\\\u0000"}',
    "a lone surrogate": '{"n": "\\ud800"}',
    "a lone surrogate in the thing": '{"thing_id": "\\ud800"}',
    "a lone surrogate in a name": '{"\\udc00": 1}',
    "a lone surrogate beside a replacement character": '{"n": "\ufffd\\udc00"}',
    "surrogates in the wrong order": '{"n": "\\ude00\\ud83d"}',
    "a replacement character": '{"thing_id": "\ufffd"}',
    "a name without quotes": "{n: 1}",
    "single quotes": "{'n': 1}",
    "a trailing comma": '{"n": 1,}',
    "a comment": '{"n": 1 /* one */}',
    "NaN": '{"n": NaN}',
    "infinity": '{"n": Infinity}',
    "an integer beyond 64 bits": '{"n": 123456789012345678901234567890}',
    "an integer of 5000 digits": f'{{"n": {"9" * 5000}}}',
    "an integer of 5000 digits within": f'{{"n": [[{"9" * 5000}]]}}',
    "a number beyond a float": '{"n": 1e400}',
    "a number just beyond a float": '{"n": -1.8e308}',
    "a number close to nothing": '{"n": 1e-400}',
    "500 levels": f'{{"n": {"[" * 500}{"]" * 500}}}',
    "950 levels": f'{{"n": {"[" * 950}{"]" * 950}}}',
    "5000 levels": f'{{"n": {"[" * 5000}{"]" * 5000}}}',
    "many brackets, all in a text": f'{{"n": "{"[{" * 500}"}}',
    "many brackets side by side": f'{{"n": [{",".join(["[]"] * 500)}]}}',
}
COLUMNS: dict[str, Values] = {
    "made in no year": {"created_at": "infinity"},
    "made before every year": {"created_at": "-infinity"},
    "due in no year": {"publish_at": "infinity"},
    "expiring in no year": {"expires_at": "infinity"},
    "made after every year, in microseconds": {"created_at": 253402300800000000},
    "due before every year, in microseconds": {"publish_at": -62135596800000001},
    "replaces what is no id": {"replaces_id": "post-1"},
    "has no id": {"id": "post-1"},
    "an id in capitals": {"id": "0193B1C0-0000-7000-8000-00000000000A"},
    "an id in braces": {"id": "{0193b1c0-0000-7000-8000-00000000000a}"},
    "replaces an id in capitals": {"replaces_id": "0193B1C0-0000-7000-8000-00000000000A"},
    "a zone that there is not": {"wall_time": "?", "tz": "Not/AZone", "gap": "forward", "fold": "first"},
    "an endless origin": {"origin_id": "x" * 100_000, "traceparent": "\x01"},
}
ODD: dict[str, Values] = {**{name: {"payload": text} for name, text in PAYLOADS.items()}, **COLUMNS}


class OddRowCases:
    """A row is refused, or as good as any other."""

    def test_whatever_the_view_lets_in_can_be_read_moved_and_run(self, scene: Scene, outsider: Outsider) -> None:
        """P43, P77: one odd row never holds up the others."""
        taken = {row_id: name for name, odd in ODD.items() if (row_id := self._let_in(scene, outsider, name, odd))}
        assert "with blanks" in taken.values()
        listed = scene.app.sync.list(limit=len(ODD))
        assert {action.id for action in listed} == set(taken)
        ours = sorted((str(action.id), action.key) for action in listed)
        theirs = sorted((str(row.action_id), row.key) for row in outsider.rows("select action_id, key from {ns}queue"))
        assert ours == theirs, "the app and the database mean the same keys"
        for action in listed:
            moved = scene.app.sync.reschedule(action.id, at=scene.clock.now())
            assert moved.payload == action.payload, taken[action.id]
        assert scene.tick().due_count == len(taken)
        published = scene.app.sync.list(status="published", limit=len(ODD))
        assert {action.replaces_id for action in published} == set(taken)
        assert scene.app.sync.post_now(published[0].id).status is Status.QUEUED

    @staticmethod
    def _let_in(scene: Scene, outsider: Outsider, name: str, odd: Values) -> UUID | None:
        """Insert a row, and return its id; None where it was refused without a trace."""
        before = outsider.contents()
        row: Values = {"id": uuid4(), "action_type": POST, "payload": {}, "publish_at": scene.clock.now(), **odd}
        try:
            outsider.insert(**row)
            return scene.app.sync.get(row["id"]).id
        except Refusal:
            assert outsider.contents() == before, name
            return None
        except Exception as error:
            error.add_note(f"the row: {name}")
            raise
