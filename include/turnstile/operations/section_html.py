"""The sections of the budget page as HTML: weeks, ledger, next week, one week, quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from turnstile.ledger.refusals import amount_text
from turnstile.operations import pictures
from turnstile.operations.books import EntryLine
from turnstile.operations.page_data import PAGE_LINES, WeekMark
from turnstile.operations.page_html import run_link, table
from turnstile.operations.week_view import PublishedWeek


def calendar_body(calendars: Mapping[str, Sequence[WeekMark]]) -> str:
    """Return every week of every programme as a small square with its state in words."""
    states = (
        "published", "revised", "withdrawn", "withheld", "refused", "charged", "held", "missing",
        "waiting",
    )  # fmt: skip
    legend = "".join(f'<li><span class="week {name}"></span>{name}</li>' for name in states)
    parts = [f'<ul class="legend">{legend}</ul>']
    for programme, marks in calendars.items():
        parts.append(f"<h2>{escape(programme)}</h2>")
        years: dict[str, list[WeekMark]] = {}
        for mark in marks:
            years.setdefault(mark.week[:4], []).append(mark)
        for year, found in years.items():
            squares = "".join(f"<li>{_square(programme, mark)}</li>" for mark in found)
            parts.append(f'<h3>{year}</h3><ol class="weeks">{squares}</ol>')
        troubled = [mark for mark in marks if mark.reason]
        if troubled:
            parts.append(
                table(
                    ("week", "state", "run", "why"),
                    (
                        (
                            mark.week,
                            mark.state,
                            run_link(programme, mark.run_id, "run"),
                            escape(mark.reason),
                        )
                        for mark in reversed(troubled[-PAGE_LINES:])
                    ),
                    f"{programme}: weeks that are not public",
                )
            )
    return "".join(parts)


def _square(programme: str, mark: WeekMark) -> str:
    """Return one week: a link to what is public, else words alone."""
    words = f"{mark.week} {mark.state}" + (f" r{mark.revision}" if mark.revision else "")
    inner = f'<span class="week {mark.state}" title="{words}"></span><span class="name">'
    inner += f"{mark.week[5:]}</span>"
    if mark.state in {"published", "revised", "withdrawn"}:
        way = f"week/{quote(programme)}/{mark.week}?revision={mark.revision}"
        return f'<a href="{way}" aria-label="{words}">{inner}</a>'
    return f'<span aria-label="{words}">{inner}</span>'


def ledger_body(
    lines: Sequence[EntryLine],
    wanted: Mapping[str, str],
    choices: Mapping[str, Sequence[str]],
    run_of: Mapping[str, str],
) -> str:
    """Return the entries that were asked for, with the form that asks.

    Args:
        lines: matching facts, newest first.
        wanted: what was asked for: programme, kind, key, page.
        choices: programmes and kinds to choose from.
        run_of: release key to the run that took it up last.
    """
    at = max(0, int(wanted.get("page") or 0))
    shown = lines[at * PAGE_LINES : (at + 1) * PAGE_LINES]
    form = (
        '<form method="get" class="filter">'
        + _choice("programme", choices["programme"], wanted.get("programme", ""))
        + _choice("kind", choices["kind"], wanted.get("kind", ""))
        + f'<label>key <input name="key" value="{escape(wanted.get("key", ""))}" '
        'placeholder="2016-W30"></label><button>Show</button></form>'
    )
    rows = (
        (
            str(line.sequence),
            escape(line.at),
            escape(line.kind.value),
            _run_of_line(line, run_of),
            escape("; ".join(f"{name} {value}" for name, value in line.told)),
        )
        for line in shown
    )
    return (
        form
        + f"<p>{len(lines)} entries</p>"
        + table(("no.", "at", "what", "release", "told"), rows, "Ledger entries, newest first")
        + _turn(at, len(lines), wanted)
    )


def _run_of_line(line: EntryLine, run_of: Mapping[str, str]) -> str:
    """Return the release of an entry as a link to its run, where one is known."""
    key = line.key or line.programme
    return run_link(line.programme, run_of.get(line.key, ""), key)


def _choice(name: str, choices: Sequence[str], chosen: str) -> str:
    """Return a labelled list to choose from."""
    options = "".join(
        f'<option value="{escape(choice)}"{" selected" if choice == chosen else ""}>'
        f"{escape(choice or 'all')}</option>"
        for choice in ("", *choices)
    )
    return f'<label>{name} <select name="{name}">{options}</select></label>'


def _turn(at: int, size: int, wanted: Mapping[str, str]) -> str:
    """Return links to newer and older entries."""
    links = []
    for number, word in ((at - 1, "newer"), (at + 1, "older")):
        if 0 <= number * PAGE_LINES < size:
            query = urlencode({**wanted, "page": str(number)})
            links.append(f'<a href="?{escape(query)}">{word}</a>')
    return f'<p class="turn">{" ".join(links)}</p>'


def plan_body(plans: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what the next week of each programme draws, costs and leaves."""
    parts = []
    for programme, plan in plans.items():
        parts.append(f"<h2>{escape(programme)}, {escape(plan['week'])}</h2>")
        parts.append(
            table(
                ("unit", "epsilon", "epsilon, replace", "rho", "delta"),
                (
                    (
                        escape(unit),
                        *(
                            str(figures[name] or "not bounded")
                            for name in ("epsilon", "epsilon_replace", "rho", "delta")
                        ),
                    )
                    for unit, figures in plan["loss"].items()
                ),
                "What the week costs one unit",
            )
        )
        parts.append(
            table(
                ("unit", "window", "cap", "taken", "this week", "left after"),
                (_left_row(line) for line in plan["left"]),
                "What it leaves",
            )
        )
        parts.append(
            table(
                ("draw", "noise", "scale", "standard deviation", "95 % within"),
                (tuple(escape(str(value)) for value in draw.values()) for draw in plan["draws"]),
                "Draws",
            )
        )
    return "".join(parts) or "<p>No week was released yet.</p>"


def _left_row(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what one cap is left with."""
    name, after = line["coordinate"], line["left_after"]
    refused = after is None or after < 0
    left = "refused" if refused else amount_text(name, after)
    return (
        escape(line["unit"]),
        f"{line['window_weeks']} weeks" if line["window_weeks"] else "-",
        f"{name} {amount_text(name, line['cap'])}",
        amount_text(name, line["taken"]),
        amount_text(name, line["asked"]),
        f'<strong class="alarm">{left}</strong>' if refused else left,
    )


def week_body(shown: PublishedWeek, mark: WeekMark, programme: str, files: Sequence[str]) -> str:
    """Return a published week."""
    card = shown.card
    units = table(
        ("unit", "epsilon", "epsilon, replace", "rho"),
        (
            (
                escape(unit),
                *(str(f[n] or "not bounded") for n in ("epsilon", "epsilon_replace", "rho")),
            )
            for unit, f in card["guarantee"]["units"].items()
        ),
        "What this week costs one unit",
    )
    gates = table(
        ("gate", "passed", "what it found"),
        (
            (escape(g["gate"]), "yes" if g["passed"] else "no", escape(str(g["statement"])))
            for g in shown.gates
        ),
        "Assessment: gates on the published bytes",
    )
    title = f"{card['title']}, {mark.week}"
    figures = (
        ("By place", pictures.map_of(shown.places, f"{title}: {shown.unit} by place")),
        (
            "By day and time",
            pictures.heat_map(shown.rows, shown.slots, shown.heat, f"{title}: {shown.unit}"),
        ),
        (
            "By time, with 95 % error bars",
            pictures.error_bars(shown.series, f"{title}: {shown.unit} by time with error bars"),
        ),
    )
    drawn = "".join(
        f"<figure><figcaption>{escape(caption)} ({escape(shown.unit)})</figcaption>{svg}</figure>"
        for caption, svg in figures
    )
    run = run_link(programme, mark.run_id, "the run that took it up last", root="../../")
    listed = "".join(f"<li><code>{escape(name)}</code></li>" for name in files)
    return (
        f"<p>{escape(mark.state)}; ledger entry {card['ledger']['sequence']}; {run}</p>"
        f"{units}{drawn}{gates}"
        f"<h2>Files</h2><ul>{listed}</ul>"
    )


def quality_body(found: Mapping[str, Mapping[tuple[str, str], str]], weeks_max: int) -> str:
    """Return the history of verdicts, rule by week, of each programme."""
    parts = []
    for programme, verdicts in found.items():
        rules = tuple(dict.fromkeys(rule for rule, _ in verdicts))
        weeks = tuple(sorted({week for _, week in verdicts}))[-weeks_max:]
        title = f"{programme}: rules by week, pass, warn, fail or broken check"
        parts.append(f"<h2>{escape(programme)}</h2>")
        parts.append(
            f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">'
            f"{pictures.verdicts(rules, weeks, verdicts, title)}</div>"
        )
    return "".join(parts) or "<p>No week was judged yet.</p>"
