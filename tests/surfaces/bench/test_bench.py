"""Does `postdate bench` measure on either database, say so in lines that programs read, and leave nothing behind?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, make_url

from postdate.bench.figure import Bound, Figure
from postdate.bench.goals import goal
from tests.surfaces.cli.shell import Answer, Shell

DRAINS = ["drain", "drain_batch_1000", "drain_batch_2000", "drain_2"]
RECONCILE = ["reconcile_idle", "reconcile_changes", "reconcile_memory"]
LATENESS = ["lateness_p50", "lateness_p99", "lateness_busy_p50", "lateness_busy_p99"]


def bench(url: str, *arguments: str) -> Answer:
    return Shell(None)("bench", *arguments, "--database-url", url)


def told(answer: Answer) -> dict[str, dict[str, Any]]:
    """Return the lines by name. How fast it was, and so whether a goal was missed, is the machine's affair."""
    assert answer.code in {0, 8}, answer.err
    lines = {line["name"]: line for line in answer.json_lines}
    assert answer.code == (8 if any(line.get("ok") is False for line in lines.values()) else 0)
    for line in lines.values():
        assert line["value"] > 0
        assert line.keys() - {"name", "value", "unit"} in (
            {"raw", "ratio"},
            {"raw", "ratio", "goal", "ok"},
            {"goal", "ok"},
            set(),
        )
    return lines


def schemas(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(inspect(engine).get_schema_names())
    finally:
        engine.dispose()


def test_a_drain_tells_each_way_to_drain(database_url: str) -> None:
    lines = told(bench(database_url, "drain", "--rows", "20", "--rounds", "1", "--json"))
    assert list(lines) == DRAINS
    assert {line["unit"] for line in lines.values()} == {"actions/s"}
    assert all(line["raw"] > 0 and line["ratio"] > 0 for line in lines.values())


def test_one_process_is_compared_with_no_other(sqlite_url: str) -> None:
    answer = bench(sqlite_url, "drain", "--rows", "5", "--rounds", "1", "--processes", "1", "--json")
    assert list(told(answer)) == DRAINS[:-1]


def test_enqueueing_tells_of_many_at_once_and_of_one_by_one(database_url: str) -> None:
    lines = told(bench(database_url, "enqueue", "--rows", "30", "--json"))
    assert list(lines) == ["schedule_many", "schedule"]
    assert all(line["raw"] > 0 and line["ratio"] > 0 for line in lines.values())


def test_lateness_is_told_in_milliseconds(database_url: str) -> None:
    lines = told(bench(database_url, "lateness", "--rows", "1", "--json"))
    assert list(lines) == LATENESS
    assert {line["unit"] for line in lines.values()} == {"ms"}


def test_memory_is_told_in_megabytes(sqlite_url: str) -> None:
    (line,) = told(bench(sqlite_url, "memory", "--rows", "20", "--json")).values()
    assert (line["name"], line["unit"]) == ("memory", "MB")
    assert line["value"] > 10


def test_a_pass_of_the_reconciler_is_told_in_seconds_and_megabytes(database_url: str) -> None:
    lines = told(bench(database_url, "reconcile", "--rows", "60", "--json"))
    assert {name: line["unit"] for name, line in lines.items()} == dict(zip(RECONCILE, ["s", "s", "MB"], strict=True))


def test_rules_are_expanded_beside_dateutil_and_become_actions(database_url: str) -> None:
    lines = told(bench(database_url, "expand", "--rows", "40", "--rounds", "1", "--json"))
    units = {name: line["unit"] for name, line in lines.items()}
    assert units == {"expand_old": "rules/s", "expand_fresh": "rules/s", "materialise": "actions/s"}
    assert all(line["ratio"] > 0 for line in lines.values())


def test_people_read_a_table(sqlite_url: str) -> None:
    head, *lines = bench(sqlite_url, "enqueue", "--rows", "5").lines
    assert head.split() == ["value", "unit", "raw", "ratio", "goal"]
    assert [line.split()[0] for line in lines] == ["schedule_many", "schedule"]


def test_the_schema_it_works_in_is_gone_afterwards(postgres_url: str) -> None:
    before = schemas(postgres_url)
    told(bench(postgres_url, "enqueue", "--rows", "5", "--json"))
    assert schemas(postgres_url) == before


def test_the_file_it_works_in_is_gone_afterwards(sqlite_url: str) -> None:
    file = Path(str(make_url(sqlite_url).database))
    before, content = set(file.parent.iterdir()), file.read_bytes()
    told(bench(sqlite_url, "enqueue", "--rows", "5", "--json"))
    assert (set(file.parent.iterdir()), file.read_bytes()) == (before, content)


def test_without_a_url_it_makes_what_it_needs() -> None:
    answer = Shell(None)("bench", "enqueue", "--rows", "5", "--on", "sqlite", "--json")
    assert list(told(answer)) == ["schedule_many", "schedule"]


def test_the_database_that_the_environment_names_is_left_alone(sqlite_url: str) -> None:
    Shell(sqlite_url)("bench", "enqueue", "--rows", "5", "--on", "sqlite")
    missing = "sqlite:////nowhere/postdate.db"
    answer = Shell(missing)("bench", "enqueue", "--rows", "5", "--on", "sqlite")
    assert answer.code in {0, 8}


def test_a_database_that_cannot_be_used_is_misconfigured() -> None:
    assert bench("postgresql://127.0.0.1:1/none", "drain").code == 4
    assert bench("sqlite:////nowhere/postdate.db", "drain").code == 4


def test_what_there_is_not_to_measure_is_wrong_usage(sqlite_url: str) -> None:
    assert bench(sqlite_url, "weight").code == 2
    assert bench(sqlite_url, "drain", "--rows", "0").code == 2


@pytest.mark.parametrize(
    ("figure", "ok"),
    [
        (Figure(name="a", value=4, unit="ms", goal=Bound(of="value", limit=4)), True),
        (Figure(name="a", value=5, unit="ms", goal=Bound(of="value", limit=4)), False),
        (Figure(name="a", value=9, unit="/s", raw=10, ratio=0.9, goal=Bound(of="ratio", limit=0.9)), True),
        (Figure(name="a", value=9, unit="/s", raw=10, ratio=0.8, goal=Bound(of="ratio", limit=0.9)), False),
        (Figure(name="a", value=9, unit="/s"), None),
    ],
)
def test_a_goal_is_a_least_ratio_or_a_greatest_value(figure: Figure, ok: bool | None) -> None:
    assert figure.ok is ok


def test_every_goal_is_one_of_a_figure() -> None:
    figures = {*DRAINS, *LATENESS, *RECONCILE, "schedule_many", "schedule", "memory"}
    assert {name for name in figures if goal("postgresql", name)} == figures - {"lateness_busy_p50"}
    assert {name for name in figures if goal("sqlite", name)} == {"drain"}
