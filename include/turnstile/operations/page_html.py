"""The budget page as HTML: written on the server, readable without scripts, from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from turnstile.ledger.forecast import CapForecast
from turnstile.ledger.records import AccountBalance
from turnstile.ledger.refusals import amount_text, cap_text
from turnstile.operations import pictures
from turnstile.operations.books import EntryLine
from turnstile.operations.page_data import PAGE_LINES, WeekMark
from turnstile.operations.week_view import PublishedWeek

SECTIONS = (
    ("", "Budget"),
    ("calendar", "Weeks"),
    ("plan", "Next week"),
    ("ledger", "Ledger"),
    ("quality", "Quality"),
)
_COORDINATES = ("epsilon", "rho", "delta")


def page(section: str, title: str, body: str, *, root: str) -> str:
    """Return a whole page.

    Args:
        section: path of the section that is shown.
        title: of the page.
        body: HTML below the heading.
        root: relative way back to the page's root: empty, or `../` as often as needed.
    """
    links = "".join(
        f'<a href="{root or "./"}{path}"{_current(path == section)}>{name}</a>'
        for path, name in SECTIONS
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - privacy budget</title>"
        f'<link rel="stylesheet" href="{root}style.css"><script src="{root}page.js" defer></script>'
        '</head><body><a class="skip" href="#main">Skip to content</a>'
        f'<nav aria-label="Sections">{links}</nav><main id="main"><h1>{escape(title)}</h1>{body}'
        "</main></body></html>"
    )


def _current(is_current: bool) -> str:  # noqa: FBT001 - a claim about one link
    """Mark the link of the section that is shown."""
    return ' aria-current="page"' if is_current else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table; cells are HTML already."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def run_link(programme: str, run_id: str, text: str, *, root: str = "") -> str:
    """Return a link to a run in Airflow, to be opened in the whole window."""
    if not run_id:
        return escape(text)
    href = f"{root}../dags/release_{quote(programme)}/runs/{quote(run_id)}"
    return f'<a target="_top" class="run" href="{href}">{escape(text)}</a>'


def budget_body(
    states: Sequence[Mapping[str, Any]],
    balances: Sequence[AccountBalance],
    forecasts: Sequence[CapForecast],
    problems: int,
) -> str:
    """Return the first section: programmes, balances, and how caps fill up."""
    trouble = ""
    if problems:
        trouble = (
            '<p class="alarm" role="alert">The ledger contradicts itself: run '
            "<code>turnstile ledger verify</code>, stop releasing, call a human.</p>"
        )
    drawn = [one for one in forecasts if len(one.path) > 1]
    burned = "".join(
        f"<figure><figcaption>{escape(_cap_words(one))}</figcaption>"
        f"{pictures.burn_down(one)}</figure>"
        for one in drawn
    )
    return (
        trouble
        + table(
            ("programme", "state", "last published", "published", "approval", "next"),
            (_state_row(state) for state in states),
            "Programmes",
        )
        + table(
            ("family", "unit", "account", "spent", "held", "cap", "left", ""),
            (_balance_row(one) for one in balances),
            "Fullest account of each unit",
        )
        + "<h2>What is left, and when it ends</h2>"
        + (burned or "<p>No cap fills up over the weeks.</p>")
        + table(
            ("family", "cap", "a week costs", "52 weeks cost", "reached"),
            (_forecast_row(one) for one in forecasts),
            "Forecast at the present rate",
        )
    )


def _state_row(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a programme."""
    trouble = state["trouble"]
    told = "in order"
    if trouble:
        told = f'<strong class="alarm">{escape(trouble["week"])} stopped</strong>: '
        told += escape(trouble["sentence"])
    last, name = state["last_published"], state["programme"]
    shown = f'<a href="week/{quote(name)}/{quote(last)}">{escape(last)}</a>' if last else "never"
    return (
        f'<span data-programme="{escape(name)}">{escape(state["title"])}</span>',
        told,
        shown,
        str(state["weeks_published"]),
        escape(state["approval"]),
        escape(state["next_week"] or "first week"),
    )


def _balance_row(one: AccountBalance) -> tuple[str, ...]:
    """Return the row of an account, with a bar where a cap holds."""
    spent, held = _loss_words(one.spent), _loss_words(one.held)
    cap, left, bar = "none", "-", ""
    for name in _COORDINATES[:2]:
        field = "epsilon_micro" if name == "epsilon" else "rho_nano"
        limit = getattr(one.cap, field) if one.cap else None
        if limit is None:
            continue
        taken, waiting = getattr(one.spent, field), getattr(one.held, field)
        cap = f"{name} {amount_text(name, limit)}"
        if taken is None or waiting is None:
            left = "nothing"
            continue
        left = f"{name} {amount_text(name, max(0, limit - taken - waiting))}"
        words = f"{amount_text(name, taken)} of {amount_text(name, limit)} {name} spent"
        bar = pictures.gauge(taken, waiting, limit, words)
    place = f"{one.family}/{one.unit}/{one.scope}"
    marked = f'<data class="spent-figure" value="{escape(_figure(one))}">{escape(spent)}</data>'
    scope = f'<span data-account="{escape(place)}">{escape(one.scope)}</span>'
    return (escape(one.family), escape(one.unit.value), scope, marked, escape(held), cap, left, bar)


def _figure(one: AccountBalance) -> str:
    """Return the exact spent figures, for scripts and tests."""
    parts = (one.spent.epsilon_micro, one.spent.rho_nano, one.spent.delta_femto)
    return ",".join("infinite" if part is None else str(part) for part in parts)


def _loss_words(loss: Any) -> str:  # noqa: ANN401 - a Loss
    """Write a loss in words; a dash for nothing."""
    from turnstile.ledger.presentation import loss_text
    from turnstile.ledger.records import Loss

    return loss_text(loss) if loss != Loss() else "-"


def _cap_words(one: CapForecast) -> str:
    """Name a cap with its end."""
    name = one.coordinate.partition("_")[0]
    end = f"reached in {one.reached_in}" if one.reached_in else "not reached at this rate"
    return f"{one.family}: {name} left for one {cap_text(one.cap)}; {end}"


def _forecast_row(one: CapForecast) -> tuple[str, ...]:
    """Return the row of a forecast."""
    name = one.coordinate.partition("_")[0]
    reached = f"in {one.reached_in}" if one.reached_in else "never at this rate"
    return (
        escape(one.family),
        escape(f"{cap_text(one.cap)}, {name} {amount_text(name, one.limit)}"),
        amount_text(name, one.weekly),
        amount_text(name, one.year),
        reached,
    )


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
