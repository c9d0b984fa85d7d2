"""One published week and the history of verdicts, as HTML: tables first, pictures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from turnstile.operations import pictures
from turnstile.operations.page_data import PAGE_LINES, WeekMark
from turnstile.operations.page_html import key, run_link, table
from turnstile.operations.section_html import LOSS_HEAD, loss_rows
from turnstile.operations.week_view import PublishedWeek

_VERDICTS = {
    "pass": "kept",
    "warn": "not kept, the week goes on",
    "fail": "not kept, the week stops",
    "broken": "the check itself failed, the week stops",
}


def week_body(shown: PublishedWeek, mark: WeekMark, programme: str, files: Sequence[str]) -> str:
    """Return a published week."""
    card = shown.card
    units = table(LOSS_HEAD, loss_rows(card["guarantee"]["units"]), "What this week costs one unit")
    gates = table(
        ("gate", "passed", "what it found"),
        ((key(g["gate"]), _passed(g["passed"]), escape(str(g["statement"]))) for g in shown.gates),
        "Assessment: gates on the published bytes",
    )
    title = f"{card['title']}, {mark.week}"
    figures = (
        (
            "by place",
            pictures.map_of(shown.places, f"{title}: {shown.unit} by place"),
            "Stronger and larger is more; dashed: noise alone may explain it; empty: withheld.",
        ),
        (
            "by day and time",
            pictures.heat_map(shown.rows, shown.slots, shown.heat, f"{title}: {shown.unit}"),
            "Stronger is more; empty: withheld.",
        ),
        (
            "by time",
            pictures.error_bars(shown.series, f"{title}: {shown.unit} by time with error bars"),
            "The lines are the error of 95 % that the noise makes.",
        ),
    )
    unit = shown.unit[:1].upper() + shown.unit[1:]
    drawn = "".join(
        f"<figure><figcaption>{escape(f'{unit} {by}')}</figcaption>{svg}<p>{note}</p></figure>"
        for by, svg, note in figures
    )
    run = run_link(programme, mark.run_id, "the run that took it up last", root="../../")
    listed = "".join(f"<li><code>{escape(name)}</code></li>" for name in files)
    return (
        f"<p>{escape(mark.state)}; ledger entry {card['ledger']['sequence']}; {run}</p>"
        f"{units}{drawn}{gates}"
        f"<details><summary>{len(files)} files of the package</summary><ul>{listed}</ul></details>"
    )


def _passed(is_passed: bool) -> str:  # noqa: FBT001 - a claim about one gate
    """Say whether a gate was passed."""
    return "yes" if is_passed else '<strong class="alarm">no</strong>'


def quality_body(found: Mapping[str, Mapping[tuple[str, str], str]], weeks_max: int) -> str:
    """Return the history of verdicts, rule by week, of each programme."""
    legend = "".join(
        f'<li><span class="swatch verdict {name}">{letter}</span>{name}: {words}</li>'
        for name, words in _VERDICTS.items()
        for letter in ("" if name == "pass" else name[0].upper(),)
    )
    parts = [f'<ul class="legend">{legend}</ul>']
    for programme, verdicts in found.items():
        rules = tuple(dict.fromkeys(rule for rule, _ in verdicts))
        weeks = tuple(sorted({week for _, week in verdicts}))[-weeks_max:]
        title = f"{programme}: rules by week, pass, warn, fail or broken check"
        parts.append(f"<h2>{escape(programme)}</h2>")
        parts.append(
            f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">'
            f"{pictures.verdicts(rules, weeks, verdicts, title)}</div>"
        )
        parts.append(_not_kept(programme, verdicts))
    return "".join(parts) if found else "<p>No week was judged yet.</p>"


def _not_kept(programme: str, verdicts: Mapping[tuple[str, str], str]) -> str:
    """Return in words what the picture shows in color, newest first."""
    told = sorted(
        ((week, rule, verdict) for (rule, week), verdict in verdicts.items() if verdict != "pass"),
        reverse=True,
    )
    if not told:
        return "<p>Every rule was kept in every week.</p>"
    rows = ((key(week), key(rule), escape(verdict)) for week, rule, verdict in told[:PAGE_LINES])
    return table(("week", "rule", "verdict"), rows, f"{programme}: rules that were not kept")
