"""The sections of the budget page as HTML: weeks, ledger, next week."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from turnstile.ledger.amounts import amount_text
from turnstile.operations.books import EntryLine
from turnstile.operations.page_data import PAGE_LINES, WeekMark
from turnstile.operations.page_html import key, number, run_link, table

_DIGITS_OF_DIGEST = 16
LOSS_HEAD = ("unit", "rho", "epsilon at delta 1e-6", "pure epsilon", "pure, replace", "delta")
_LOSS_FIELDS = ("rho", "epsilon_at_delta_1e-6", "epsilon", "epsilon_replace", "delta")


def loss_rows(units: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield what a week costs each unit, below the names of `LOSS_HEAD`."""
    for unit, figures in units.items():
        shown = (figures.get(name) for name in _LOSS_FIELDS)
        yield key(unit), *("infinite" if one is None else number(str(one)) for one in shown)


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
        if not marks:
            parts.append("<p>Never run.</p>")
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
                            key(mark.week),
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
            number(str(line.sequence)),
            key(line.at.partition("+")[0].replace("T", " ")),
            key(line.kind.value),
            _run_of_line(line, run_of),
            "; ".join(_told(name, value) for name, value in line.told),
        )
        for line in shown
    )
    return (
        form
        + f"<p>{len(lines)} {'entry' if len(lines) == 1 else 'entries'}</p>"
        + table(
            ("no.", "at, UTC", "what", "release", "particulars"),
            rows,
            "Ledger entries, newest first",
        )
        + _turn(at, len(lines), wanted)
    )


def _told(name: str, value: str) -> str:
    """Write one particular of an entry; of a digest its beginning, the rest when pointed at."""
    if name.endswith("_digest"):
        shown = f'<abbr title="{escape(value)}">{escape(value[:_DIGITS_OF_DIGEST])}</abbr>'
        return f"{escape(name.replace('_', ' '))} {shown}"
    return escape(f"{name} {value}")


def _run_of_line(line: EntryLine, run_of: Mapping[str, str]) -> str:
    """Return the release of an entry as a link to its run, where one is known."""
    return run_link(line.programme, run_of.get(line.key, ""), line.key or line.programme)


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
    for turned, word in ((at - 1, "newer"), (at + 1, "older")):
        if 0 <= turned * PAGE_LINES < size:
            query = urlencode({**wanted, "page": str(turned)})
            links.append(f'<a href="?{escape(query)}">{word}</a>')
    return f'<p class="turn">{" ".join(links)}</p>'


def plan_body(plans: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Return what the next week of each programme draws, costs and leaves.

    Args:
        plans: programme to its plan; None where nothing says which week is next.
    """
    parts = []
    for programme, plan in plans.items():
        if plan is None:
            continue
        parts.append(f"<h2>{escape(programme)}, {escape(plan['week'])}</h2>")
        costs = loss_rows(plan["loss"])
        parts.append(table(LOSS_HEAD, costs, "What the week costs one unit"))
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
                (_draw_row(draw) for draw in plan["draws"]),
                "Draws",
            )
        )
    never = [programme for programme, plan in plans.items() if plan is None]
    if never:
        parts.append(
            f"<h2>Never run</h2><p>{escape(', '.join(never))}. What a week would cost: "
            "<code>turnstile plan PROGRAMME --week WEEK</code>.</p>"
        )
    return "".join(parts)


def _draw_row(draw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one draw with its noise."""
    label, noise, *figures = (str(value) for value in draw.values())
    return key(label), key(noise.replace("_", " ")), *(number(figure) for figure in figures)


def _left_row(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what one cap is left with."""
    name, after = line["coordinate"], line["left_after"]
    refused = after is None or after < 0
    left = "refused" if refused else amount_text(name, after)
    return (
        key(line["unit"]),
        f"{line['window_weeks']} weeks" if line["window_weeks"] else "-",
        key(f"{name} {amount_text(name, line['cap'])}"),
        number(amount_text(name, line["taken"])),
        number(amount_text(name, line["asked"])),
        f'<strong class="alarm">{left}</strong>' if refused else number(left),
    )
