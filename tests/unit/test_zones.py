"""Are exactly the IANA zones known, with the newer of the two copies of their rules?"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import zoneinfo
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import postdate
from postdate.domain.zones import tzdata_version, zone
from postdate.errors import InvalidZone

TZDATA = import_module("tzdata")
PACKAGE = Path(TZDATA.__path__[0])
NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "UTC",
            "Etc/UTC",
            "Etc/GMT+5",
            "GMT",
            "EST5EDT",
            "US/Eastern",
            "Europe/Kyiv",
            "Europe/Kiev",
            "Asia/Calcutta",
            "America/Argentina/ComodRivadavia",
            "America/Port-au-Prince",
        ],
    )
    def test_names_and_their_older_links_are_zones(self, name: str) -> None:
        assert zone(name).key == name
        assert zone(name) is zone(name)

    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("Mars/Phobos", "is not an IANA zone name"),
            ("America", "is not an IANA zone name"),
            ("America/", "is not an IANA zone name"),
            ("/Europe/London", "is not an IANA zone name"),
            ("/usr/share/zoneinfo/Europe/London", "is not an IANA zone name"),
            ("../etc/passwd", "is not an IANA zone name"),
            ("Europe/../Europe/London", "is not an IANA zone name"),
            ("Europe//London", "is not an IANA zone name"),
            ("Europe\\London", "is not an IANA zone name"),
            ("Europe/London\0", "is not an IANA zone name"),
            ("Europe/London ", "is not an IANA zone name"),
            (" Europe/London", "is not an IANA zone name"),
            ("Europe/London\n", "is not an IANA zone name"),
            ("+25:00", "is not an IANA zone name"),
            ("UTC+5", "is not an IANA zone name"),
            ("Z", "is not an IANA zone name"),
            ("CET-1CEST", "is not an IANA zone name"),
            ("IST", "is not an IANA zone name"),
            ("Pacific Standard Time", "is not an IANA zone name"),
            ("localtime", "is not an IANA zone name"),
            ("Factory", "is not an IANA zone name"),
            ("posixrules", "is not an IANA zone name"),
            ("posix/Europe/Paris", "is not an IANA zone name"),
            ("right/UTC", "is not an IANA zone name"),
            ("zone.tab", "is not an IANA zone name"),
            ("zone1970.tab", "is not an IANA zone name"),
            ("tzdata.zi", "is not an IANA zone name"),
            ("leapseconds", "is not an IANA zone name"),
            ("__init__.py", "is not an IANA zone name"),
            ("Europe/L\u043endon", "must be ASCII"),
            ("\ud800", "must be ASCII"),
            ("", "1 to 64 characters"),
            ("A" * 5000, "1 to 64 characters"),
            (None, "must be the text"),
            (5, "must be the text"),
            (True, "must be the text"),
            (b"UTC", "must be the text"),
            (["UTC"], "must be the text"),
            ({"tz": "UTC"}, "must be the text"),
            (UTC, "must be the text"),
            (zoneinfo.ZoneInfo("UTC"), "must be the text"),
        ],
    )
    def test_everything_else_is_refused_by_its_rule(self, name: object, rule: str) -> None:
        with pytest.raises(InvalidZone) as refusal:
            zone(name)
        assert refusal.value.field == "tz"
        assert rule in refusal.value.rule
        assert refusal.value.value is name
        assert len(str(refusal.value)) < 250

    @pytest.mark.parametrize(
        ("name", "meant"),
        [("america/new_york", "America/New_York"), ("utc", "UTC"), ("europe/LONDON", "Europe/London")],
    )
    def test_a_name_in_the_wrong_case_is_refused_with_the_right_one(self, name: str, meant: str) -> None:
        with pytest.raises(InvalidZone, match=f"did you mean {meant}\\?"):
            zone(name)

    def test_every_zone_of_the_package_is_known_but_the_placeholder(self) -> None:
        listed = (PACKAGE / "zones").read_text("ascii").split()
        assert len(listed) > 500
        assert [name for name in listed if zone_or_none(name) is None] == ["Factory"]

    @pytest.mark.parametrize("name", ["Europe/Paris", "UTC"])
    def test_a_zone_survives_pickling_and_copying(self, name: str) -> None:
        stamp = NOON.astimezone(zone(name))
        for twin in (pickle.loads(pickle.dumps(stamp)), copy.deepcopy(stamp)):
            assert twin == stamp
            assert twin.tzinfo is zone(name)


def zone_or_none(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zone(name)
    except InvalidZone:
        return None


# --- which copy of the rules is in force ------------------------------------------------------------------

REPORT = """
import json, zoneinfo
path = zoneinfo.TZPATH
from postdate.domain.walltime import resolve
from postdate.domain.zones import tzdata_version, zone
from postdate.errors import InvalidZone
def known(name):
    try:
        return bool(zone(name))
    except InvalidZone:
        return False
print(json.dumps({
    "version": tzdata_version(),
    "paris": resolve("2026-05-20T12:00", "Europe/Paris").isoformat(),
    "new": known("Europe/Newtown"),
    "leaked": known("localtime") or known("leap.dat"),
    "same path": zoneinfo.TZPATH == path,
}))
"""
PARIS, TOKYO = "2026-05-20T10:00:00+00:00", "2026-05-20T03:00:00+00:00"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Return a folder of system zone files in which clocks in Paris, oddly, follow Tokyo's."""
    source = PACKAGE / "zoneinfo" / "Asia" / "Tokyo"
    (tmp_path / "Europe").mkdir()
    for name in ("Europe/Paris", "Europe/Newtown", "localtime", "leap.dat"):
        (tmp_path / name).write_bytes(source.read_bytes())
    return tmp_path


def _report(*folders: Path) -> dict[str, Any]:
    """Ask a fresh interpreter that looks for system zones in `folders` only."""
    environment = {
        "PYTHONTZPATH": ":".join(map(str, folders)),
        "PYTHONPATH": str(Path(postdate.__path__[0]).parent),
    }
    done = subprocess.run([sys.executable, "-c", REPORT], env=environment, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert report.pop("same path"), "the search path of zoneinfo belongs to the process"
    assert not report.pop("leaked"), "a file that is no IANA zone was taken for one"
    return dict(report)


class TestVersions:
    def test_the_version_in_force_is_at_least_the_packages(self) -> None:
        version, source = tzdata_version()
        assert version >= TZDATA.IANA_VERSION
        assert source in {"system", "package"}

    @pytest.mark.parametrize(("file", "text"), [("tzdata.zi", "# version 2099a\n# ddeps\n"), ("+VERSION", "2099a\n")])
    def test_newer_system_files_win(self, system: Path, file: str, text: str) -> None:
        (system / file).write_text(text)
        assert _report(system) == {"version": ["2099a", "system"], "paris": TOKYO, "new": True}

    def test_equal_versions_leave_the_systems_in_force(self, system: Path) -> None:
        (system / "tzdata.zi").write_text(f"# version {TZDATA.IANA_VERSION}\n")
        assert _report(system) == {"version": [TZDATA.IANA_VERSION, "system"], "paris": TOKYO, "new": True}

    @pytest.mark.parametrize("text", ["# version 2019c\n", "# version unknown\n", "\xff" * 1000, "2099", ""])
    def test_older_system_files_or_ones_of_unknown_age_lose(self, system: Path, text: str) -> None:
        (system / "tzdata.zi").write_text(text, "latin-1")
        assert _report(system) == {"version": [TZDATA.IANA_VERSION, "package"], "paris": PARIS, "new": False}

    def test_the_package_serves_where_there_are_no_system_files(self, tmp_path: Path) -> None:
        assert _report(tmp_path / "missing") == {
            "version": [TZDATA.IANA_VERSION, "package"],
            "paris": PARIS,
            "new": False,
        }

    def test_only_the_folder_that_zoneinfo_reads_first_is_asked(self, system: Path, tmp_path: Path) -> None:
        later = tmp_path / "later"
        later.mkdir()
        (later / "tzdata.zi").write_text("# version 2099a\n")
        assert _report(system, later)["version"] == [TZDATA.IANA_VERSION, "package"]
        (system / "tzdata.zi").write_text("# version 2099b\n")
        assert _report(tmp_path / "missing", system, later)["version"] == ["2099b", "system"]
