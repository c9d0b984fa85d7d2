"""What changed and what is missing: CHANGELOG, KNOWN_GAPS, licence and citation of a package."""

from __future__ import annotations

import csv
from io import StringIO

from turnstile.publishing.contents import Contents
from turnstile.publishing.describe.licences import path_of

_ABSENT = ("no_service", "declared beforehand: nothing was drawn or charged")
_NO_INPUT = ("no_input", "the numbers of this day are noise alone")
_GAPS_HEADER = ("first_day", "last_day", "kind", "meaning")


def write_log(contents: Contents) -> bytes:
    """Return what happened to this week, newest last, from the ledger's public entries."""
    lines = [f"# Changes of {contents.drawn.programme.title}, {contents.drawn.plan.week}", ""]
    lines += [f"- {change.day}, r{change.revision}: {change.text}" for change in contents.history]
    return ("\n".join(lines) + "\n").encode()


def write_gaps(contents: Contents) -> bytes:
    """Return the service days without input; a header alone where there is none."""
    sink = StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_GAPS_HEADER)
    for day in contents.drawn.artefact.gaps:
        is_declared = str(day) in contents.card["absent_days"]
        writer.writerow((day, day, *(_ABSENT if is_declared else _NO_INPUT)))
    return sink.getvalue().encode()


def write_licence(contents: Contents) -> bytes:
    """Return the licence's name and where its text is."""
    publish = contents.drawn.programme.publish
    path = path_of(publish.licence)
    text = f"# Licence\n\n© {publish.curator}. Licensed under {publish.licence}"
    return f"{text}{f' ({path})' if path else ''}.\n".encode()


def write_citation(contents: Contents) -> bytes:
    """Return CITATION.cff (Citation File Format 1.2.0)."""
    import yaml

    programme, plan = contents.drawn.programme, contents.drawn.plan
    cited = {
        "cff-version": "1.2.0",
        "type": "dataset",
        "message": "Please cite this data as below, with its revision.",
        "title": f"{programme.title}, {plan.week}, revision {plan.revision}",
        "authors": [{"name": programme.publish.curator}],
        "version": f"{plan.week}.r{plan.revision}",
        "date-released": contents.built_at.date(),
        "license": programme.publish.licence,
        "contact": [{"name": programme.publish.curator, "email": programme.publish.contact}]
        if "@" in programme.publish.contact
        else [],
    }
    kept = {name: value for name, value in cited.items() if value != []}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True).encode()
