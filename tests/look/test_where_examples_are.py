"""A warning of rows set aside names the look that shows them: of that week, or this very page."""

from __future__ import annotations

import json
from typing import Any

from city_week import WEEK, Form, taps, written

TAPS = ("card_id=id_tarjeta", "place=parada", "tapped_at=momento", "mode=modo", "action=tipo")


def _with_one_aside(city: Any) -> Any:
    lines = written(taps(), Form()).decode().splitlines()
    at = lines[0].split(",").index("momento")
    broken = lines[1].split(",")
    broken[at] = "never"
    city.new(taps(), Form())
    return city.put("a.csv", "\n".join([lines[0], ",".join(broken), *lines[2:]]) + "\n")


def test_a_run_names_the_week_whose_rows_it_set_aside(city: Any) -> None:
    _with_one_aside(city)
    city.goes_on()
    (report,) = (city.home / f"private/city/{WEEK}/snapshots").glob("*/quality.json")
    findings = json.loads(report.read_text())["findings"]
    (said,) = (one["sentence"] for one in findings if one["rule"] == "unparsable_timestamp")
    assert f"; turnstile look city --week {WEEK} shows them in the private zone" in said


def test_the_page_of_a_look_names_itself(city: Any) -> None:
    file = _with_one_aside(city)
    city.look()
    given = [f"--column={pair}" for pair in TAPS]
    city.tells("look", "--from", file, "--feed", "taps", *given, "--zone", "America/Chicago")
    for page in (f"city/{WEEK}/snapshots/look", "looks/a"):
        record = json.loads((city.home / f"private/{page}/look.json").read_text())
        judged = "\n".join(record["sections"]["Judgement"])
        assert (
            "as unparsable_timestamp; examples stand on the page of this look, under Rules"
            in judged
        )
        assert "turnstile look" not in judged


def test_a_decision_of_a_look_names_no_other_look(city: Any) -> None:
    file = _with_one_aside(city)
    lines = file.read_text().splitlines()
    at = lines[0].split(",").index("momento")
    records = [line.split(",") for line in lines[1:]]
    for record in records[::3]:
        record[at] = "never"
    file.write_text("\n".join([lines[0], *map(",".join, records)]) + "\n")
    assert "turnstile look" not in city.look()[1]
