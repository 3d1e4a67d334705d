"""What does `postdate schedule --csv` make of a file?"""

from __future__ import annotations

import csv
import io
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.cli.bulk import BATCH_ROWS, batches
from postdate.cli.csv_rows import csv_rows
from postdate.cli.lines import MAX_LINE, Row, lines
from postdate.errors import Invalid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell

AT = ("--at", "2099-03-14T09:00Z")


def test_columns_that_are_options_say_when_and_where_and_the_others_are_the_payload(
    postdate: Shell, elsewhere: Path
) -> None:
    (elsewhere / "rows.csv").write_text(
        "type,at,tz,gap,fold,target,thing_id,occurrence,expires_at,overlap_key,idempotency_key,text,url,payload\n"
        "reminder,2099-03-14T09:00,Europe/Lisbon,forward,first,phone,t-1,o-1,2099-03-15T00:00Z,lap,idem,Hi,,\n"
        'call_webhook,2099-03-14T09:00Z,,,,,,,,,,,https://example.com,"{""body"": {""n"": [1, 2]}}"\n'
    )
    first, second = postdate.done("schedule", "--csv", "rows.csv", "--json").json_lines
    assert (first["line"], second["line"]) == (2, 3)
    assert first["payload"].items() >= {"thing_id": "t-1", "text": "Hi"}.items()
    assert (first["tz"], first["target_key"], first["occurrence"]) == ("Europe/Lisbon", "phone", "o-1")
    assert (first["expires_at"], first["overlap_key"]) == ("2099-03-15T00:00:00Z", "lap")
    assert second["payload"].items() >= {"url": "https://example.com", "body": {"n": [1, 2]}}.items()
    assert [action["id"] for action in postdate.done("list", "--json").json_lines] == [first["id"], second["id"]]


def test_options_stand_in_for_what_a_row_leaves_out(postdate: Shell) -> None:
    rows = "at,text,target\n2099-01-01T09:00,,\n,own,phone\n"
    answer = postdate(
        *("schedule", "reminder", "--csv", "-", "--at", "2099-03-14T09:00", "--tz", "Asia/Tokyo"),
        *("--target", "post", "--set", "text=default", "--json"),
        stdin=rows,
    )
    made = [(row["publish_at"], row["payload"]["text"], row["target_key"]) for row in answer.json_lines]
    assert made == [("2099-01-01T00:00:00Z", "default", "post"), ("2099-03-14T00:00:00Z", "own", "phone")]


BROKEN = (
    b"\xef\xbb\xbftype,at,tz,text,payload\r\n"
    b"reminder,2099-03-14T09:00Z,,ok,\r\n"
    b"reminder,2099-03-14T09:00,,no zone,\r\n"
    b'reminder,2099-03-14T09:00Z,,"over\r\ntwo ""lines""",\r\n'
    b"nope,2099-03-14T09:00Z,,unknown type,\r\n"
    b"reminder,2099-03-14T09:00Z,,not \xff UTF-8,\r\n"
    b"reminder,2099-03-14T09:00Z,,nul \x00,\r\n"
    b"reminder,2099-03-14T09:00Z,,too,many,cells\r\n"
    b"\r\n"
    b"reminder,2099-03-14T09:00Z,,too few\r\n"
    b'reminder,2099-03-14T09:00Z,,"never closed,\r\n'
    b'reminder,2099-03-14T09:00Z,,,"{""text"": ""from the payload""}"\r\n'
    b"reminder,2099-03-14T09:00Z,,,{\r\n"
    b"reminder,2099-03-14T09:00Z,," + b"x" * (MAX_LINE + 1) + b",\r\n"
    b'reminder,2099-03-14T09:00Z,,"a "stray" quote",\r\n'
    b"reminder,2099-03-14T09:00Z,,last,"
)


def test_a_bad_line_is_told_by_its_number_and_stops_nothing_else(postdate: Shell, elsewhere: Path) -> None:
    (elsewhere / "broken.csv").write_bytes(BROKEN)
    answer = postdate("schedule", "--csv", "broken.csv", "--json")
    assert answer.code == 5
    assert [(row["line"], row["payload"]["text"]) for row in answer.json_lines] == [
        (2, "ok"),
        (4, 'over\r\ntwo "lines"'),
        (13, "from the payload"),
        (17, "last"),
    ]
    *told, summary = answer.err.splitlines()
    expected = [
        "line 3: tz: is needed: a wall time without a zone names no instant",
        "line 6: action_type: is not registered",
        "line 7: text: must be UTF-8",
        "line 8: payload: must not hold NUL characters",
        "line 9: row: must have 5 cells, as the header has (got 6)",
        "line 11: row: must have 5 cells, as the header has (got 4)",
        "line 12: row: is not CSV: a quote is not closed",
        "line 14: payload: must be JSON",
        f"line 15: row: must be at most {MAX_LINE} bytes long",
        "line 16: row: is not CSV: ',' expected after '\"'",
    ]
    assert len(told) == len(expected)
    for said, start in zip(told, expected, strict=True):
        assert said.startswith(f"postdate: {start}")
    assert summary == "4 scheduled, 10 refused"
    assert len(postdate.done("list").lines) == 4


def test_the_summary_is_the_answer_where_no_json_is_asked_for(on_sqlite: Shell) -> None:
    answer = on_sqlite("schedule", "reminder", "--csv", "-", *AT, stdin="text\na\nb\n")
    assert (answer.code, answer.out, answer.err) == (0, "2 scheduled, 0 refused\n", "")


def test_running_a_file_again_schedules_no_thing_twice(postdate: Shell) -> None:
    again = ("schedule", "reminder", "--csv", "-", *AT)
    postdate(*again, stdin="thing_id,text\na,1\nb,2\n")
    answer = postdate(*again, stdin="thing_id,text\na,1\nb,2\nc,3\na,4\n")
    assert (answer.code, answer.out) == (5, "1 scheduled, 3 refused\n")
    assert [line.split(": already")[0] for line in answer.err.splitlines()] == [
        "postdate: line 2",
        "postdate: line 3",
        "postdate: line 5",
    ]


def test_rows_beyond_one_transaction_are_scheduled_too(postdate: Shell) -> None:
    count = 2 * BATCH_ROWS + 1
    rows = "\n".join(["text", *(f"n{number}" for number in range(count))])
    answer = postdate("schedule", "reminder", "--csv", "-", *AT, "--json", stdin=rows)
    assert [row["payload"]["text"] for row in answer.json_lines] == [f"n{number}" for number in range(count)]
    assert [row["line"] for row in answer.json_lines] == list(range(2, count + 2))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "header: is missing"),
        (b"\n\r\n", "header: is missing"),
        (b"at,text,at\n", "header: must name every column once (got 'at')"),
        (b"at,,text\n", "header: must name every column: column 2 has no name"),
        (b"at,t\xe9xt\n", "header: must be UTF-8: column 2 is not"),
        ("at,text\n".encode("utf-16"), "header: must be UTF-8"),
        (b'at,"text\n', "header: row: is not CSV"),
        (b"at,text\rnew,line\n", "header: row: is not CSV"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused_as_a_whole(on_sqlite: Shell, content: bytes, said: str) -> None:
    answer = on_sqlite("schedule", "reminder", "--csv", "-", *AT, stdin=content)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--csv", "missing.csv"), "csv: cannot be read: No such file or directory"),
        (("--csv", "."), "csv: cannot be read: Is a directory"),
        (("--jsonl", "missing.jsonl"), "jsonl: cannot be read: No such file or directory"),
        (("--csv", "-", "--jsonl", "-"), "jsonl: must not be given beside --csv"),
        (("--csv", "-", "--idempotency-key", "k"), "idempotency_key: must be a column"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_invalid_value(
    on_sqlite: Shell, arguments: tuple[str, ...], said: str
) -> None:
    answer = on_sqlite("schedule", "reminder", *arguments)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")


CELLS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_whatever_is_written_as_csv_is_read_back_with_the_line_it_begins_on(rows: list[list[str]], end: str) -> None:
    text = io.StringIO(newline="")
    written = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    written.writerow(["a", "b"])
    starts = []
    for row in rows:
        starts.append(text.getvalue().count("\n") + 1)
        written.writerow(row)
    read = list(csv_rows(lines(io.BytesIO(text.getvalue().encode()))))
    expected = [{name: cell for name, cell in zip("ab", row, strict=True) if cell} for row in rows]
    assert [row.given for row in read] == expected
    assert [row.line for row in read] == starts


BAD_LINES = st.sampled_from([b'x,"', b'x,"y"z', b"\xff,x", b"x", b"x,y,z", b"x," + b"y" * MAX_LINE, b"x\ry,z"])


# Two lines that each leave a quote open are one row over two lines: that is what CSV is.
CONTENT = st.lists(st.one_of(st.integers(0, 9), BAD_LINES), max_size=12).filter(lambda lines: lines.count(b'x,"') < 2)


@given(CONTENT)
def test_a_broken_row_costs_itself_alone(content: list[int | bytes]) -> None:
    file = b"a,b\n" + b"".join(b"good,%d\n" % line if isinstance(line, int) else line + b"\n" for line in content)
    read = list(csv_rows(lines(io.BytesIO(file))))
    assert [row.line for row in read] == list(range(2, len(content) + 2))
    for row, line in zip(read, content, strict=True):
        if isinstance(line, int):
            assert row.given == {"a": "good", "b": str(line)}
        else:
            assert isinstance(row.given, Invalid)


class Counted(io.RawIOBase):
    """A long file that counts how much of it was read."""

    def __init__(self, content: bytes) -> None:
        self._left = memoryview(content)
        self.read_so_far = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        into = memoryview(buffer)  # type: ignore[arg-type]
        count = min(len(into), len(self._left))
        into[:count] = self._left[:count]
        self._left = self._left[count:]
        self.read_so_far += count
        return count


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"x\n" * 10_000_000, id="rows"),
        pytest.param(b'"' + b"x\n" * 10_000_000, id="a quote that is never closed"),
        pytest.param(b'"x\n' * 7_000_000, id="quotes that are never closed"),
    ],
)
def test_no_more_of_a_file_is_held_than_a_batch_and_a_row(content: bytes) -> None:
    file = Counted(b"a\n" + content)
    next(batches(csv_rows(lines(io.BufferedReader(file)))))
    assert file.read_so_far < 2 * MAX_LINE


def test_a_line_without_end_is_passed_over_without_being_held() -> None:
    file = io.BufferedReader(Counted(b"a\n" + b"x" * 50_000_000 + b"\nb\n"))
    tracemalloc.start()
    read = [row.given for row in csv_rows(lines(file))]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(read[0], Invalid)
    assert read[1:] == [{"a": "b"}]
    assert peak < 8 * MAX_LINE


def test_a_batch_is_bounded_in_bytes_too() -> None:
    rows = [Row(line=number, size=MAX_LINE, given={}) for number in range(12)]
    assert [len(batch) for batch in batches(rows)] == [4, 4, 4]
