"""A deployment of its own for each test, and the commands of a user."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from city_week import (
    BUS_COLUMNS,
    TAP_COLUMNS,
    WEEK,
    ZONE,
    Form,
    Reading,
    roads_txt,
    stops_txt,
    written,
)

from turnstile.cli import main
from turnstile.pipeline import steps

ROOT = Path(__file__).parents[2]


class City:
    """An authority with files, a programme and a home."""

    def __init__(self, home: Path, include: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.home, self.include, self._capfd = home, include, capfd
        self.stops = home / "stops.txt"
        self.stops.write_text(stops_txt())
        self.roads = home / "roads.txt"
        self.roads.write_text(roads_txt())

    @property
    def yaml(self) -> Path:
        return self.include / "programmes/city.yaml"

    def deliver(self, records: Any, form: Form, name: str = "a.csv") -> Path:
        return self.put(name, written(records, form))

    def put(self, name: str, content: bytes | str, week: object = WEEK) -> Path:
        """Let a file of a week land."""
        file = self.home / f"landing/city/{week}" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def tells(self, *arguments: object) -> tuple[int, str]:
        """Run a command; return its code and all that it prints."""
        self._capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        shown = self._capfd.readouterr()
        return code, shown.out + shown.err

    def new(self, records: Any, form: Form, *options: str) -> str:
        """Deliver a week and write its programme."""
        file = self.deliver(records, form)
        vehicles = isinstance(records[0], Reading)
        columns = BUS_COLUMNS if vehicles else dict(TAP_COLUMNS)
        if not vehicles:
            time_columns = (
                {"tap_date": "fecha", "tap_time": "hora"}
                if form.dates
                else {"tapped_at": "momento"}
            )
            columns |= time_columns | ({"action": "tipo"} if form.words else {})
        pairs = [f"--column={field}={column}" for field, column in columns.items()]
        feed = "tides_vehicle_locations" if vehicles else "taps"
        public = self.roads if vehicles else self.stops
        given = ["--gtfs", public, "--mode", "bus", "--feed", feed, "--protect", "day", *pairs]
        volume = (
            ()
            if {"--trips", "--buses", "--accept-no-gain"} & {*options}
            else ("--accept-no-gain", "a made city")
        )
        zone = (
            () if any(option.startswith("--zone") for option in options) else ("--zone", ZONE.key)
        )
        code, said = self.tells("new", "city", "--from", file, *given, *zone, *volume, *options)
        assert code == 0, said
        return said

    def edit(self, old: str, new: str) -> None:
        text = self.yaml.read_text()
        assert re.search(old, text), old
        self.yaml.write_text(re.sub(old, new, text, count=1))

    def look(self, *options: str) -> tuple[int, str, dict[str, Any]]:
        """Look; return code, what is printed and the private record."""
        code, said = self.tells("look", "city", *options)
        record = self.home / f"private/city/{WEEK}/snapshots/look/look.json"
        return code, said, json.loads(record.read_text()) if record.exists() else {}

    def lines(self) -> dict[str, str]:
        """The lines of YAML that a look proposes, by key."""
        return {
            decision["key"]: decision["line"]
            for decision in self.look()[2]["decisions"]
            if decision["line"]
        }

    def adopt(self, line: str) -> None:
        """Write a line into the programme, in place of the same key if it is there."""
        name = line.partition(":")[0]
        text = re.sub(rf"\n  {name}: .*", "", self.yaml.read_text())
        self.yaml.write_text(text.replace("\nsource:\n", f"\nsource:\n  {line}\n"))

    def goes_on(self, week: object = WEEK) -> None:
        """Let the tasks judge a week that read it; they raise where it stops before the charge."""
        for step in (steps.ingest, steps.validate):
            step("city", str(week), 0)

    def run_stops(self, *words: str, code: int = 2, week: object = WEEK) -> str:
        """A run stops, says these words and charges nothing; return all that it says."""
        found, said = self.tells("run", "city", "--week", week)
        assert found == code, said
        for word in words:
            assert word in said
        assert not self.is_published
        assert not self.is_charged
        return said

    @property
    def is_charged(self) -> bool:
        """Whether a draw began, whatever became of it."""
        return "draw_begun" in self.tells("ledger", "entries")[1]

    @property
    def is_published(self) -> bool:
        return any(self.home.glob("public/city/*/r0"))


@pytest.fixture
def city(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> City:
    pytest.importorskip("turnstile_design")  # of which `new` and `look` are commands
    home, include = tmp_path / "home", tmp_path / "include"
    home.mkdir()
    for folder in ("programmes", "domains"):
        (include / folder).mkdir(parents=True)
    shutil.copy(ROOT / "include/people.yaml", include)
    monkeypatch.setenv("TURNSTILE_HOME", str(home))
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(include))
    return City(home, include, capfd)
