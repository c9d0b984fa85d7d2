"""SQL that brings the ids of cards and vehicles to the one form that a programme states.

Every id of every feed and file passes here once, as the text that was taken out of its record
(PRIVACY 1.2). A programme that states no form has its ids as they come, less outer spaces of the
columns of a file: version 0.1.0 did that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from turnstile.errors import InputError
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
from turnstile.programme.source_spec import SourceSpec

# Spaces of every width, and what breaks lines or columns.
_BLANK = r"[\t-\r\x1c-\x1f\x{85}\p{Z}]"
# Controls, format characters, and what Unicode calls default ignorable (DerivedCoreProperties).
_INVISIBLE = (
    r"[\x00-\x08\x0e-\x1b\x7f-\x{84}\x{86}-\x{9f}\p{Cf}\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}"
    r"\x{180b}-\x{180f}\x{2060}-\x{206f}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}\x{fff0}-\x{fff8}"
    r"\x{e0000}-\x{e0fff}]"
)
_HIDDEN = rf"{_BLANK}|{_INVISIBLE}"
# In these nothing is hidden, composed or doubtful: most ids, told at a third of the cost.
_PLAIN_TEXT = "[0-9A-Za-z_-]+"
# A whole number that went through a column of floats or decimals; a list, an object.
_NO_TEXT = r"[+-]?[0-9]+(\.0*|(\.[0-9]+)?[eE]\+[0-9]+|\.[0-9]+[eE][0-9]+)|[\[{].*"
EXACT_FLOAT = 15  # digits; whole numbers below 10^15 come out of a column of floats as they went in
_FOLDED = {LetterCase.UPPER: "upper", LetterCase.LOWER: "lower"}
# Types of Parquet in which equal ids print alike; `"NULL"` is a column without any.
_EXACT = frozenset(
    {
        *("VARCHAR", "UUID", '"NULL"'),
        *(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")),
        *("INTEGER", "UINTEGER"),
    }
)


def in_form(relation: str, source: SourceSpec) -> str:
    """Return the SQL of fields whose ids are in the form that a programme states.

    An id of which nothing is left is NULL. One of another form stays for the quarantine, and
    `another_form_rule` finds it.

    Args:
        relation: SQL of the fields.
        source: says which field is the id, and its form.
    """
    form, field = source.id_form, source.id_field
    if form is None:
        return f"SELECT * FROM {relation}"
    folded = _FOLDED.get(form.case or LetterCase.KEEP, "")
    canonical = (
        f"CASE WHEN id_is_plain THEN {folded}({field}) ELSE {_canonical(form, field, folded)} END"
    )
    plain = f"regexp_full_match({field}, '{_plain(form)}')"
    return (
        f"SELECT * REPLACE ({canonical} AS {field}) FROM (SELECT *, {plain} AS id_is_plain "
        f"FROM {relation})"
    )


def another_form_rule(source: SourceSpec) -> str:
    """Return the SQL branch (`WHEN ... THEN rule`) of ids that are of another form.

    It reads the fields of `in_form`, and is empty where no form is stated.
    """
    form, field = source.id_form, source.id_field
    if form is None:
        return ""
    if form.kind is IdKind.DIGITS:
        other = f"NOT regexp_full_match({field}, '{_plain(form)}')"
    else:
        other = f"regexp_full_match({field}, '{_NO_TEXT}')"
    return f"WHEN NOT id_is_plain AND {other} THEN '{field}_of_another_form'"


def refuse_inexact(
    source: SourceSpec, paths: Mapping[str, str], kinds: Mapping[str, str], file: str
) -> None:
    """Refuse a file whose ids are of a type that writes one id in several ways.

    Args:
        source: says whether the programme states a form.
        paths: of the id, by each column that may hold it, or a struct with it.
        kinds: type of each column, where the file has types.
        file: its name.

    Raises:
        InputError: floats, decimals and whatever else is neither text nor a whole number.
    """
    if source.id_form is None:
        return
    for column, path in paths.items():
        inside = rf'STRUCT.*?\W{re.escape(path.rpartition(".")[2])}"? (\w+).*'
        kind = re.sub(inside, r"\1", kinds.get(column, "VARCHAR"))
        if kind not in _EXACT and not kind.startswith("STRUCT"):  # without it
            rule = f"its ids are of the type {kind.partition('(')[0]}, in which one id has several"
            rule += " spellings; deliver them as text or as whole numbers"
            raise InputError(where=file, field=column, rule=rule)


def _plain(form: IdForm) -> str:
    """Return the pattern of ids that are in form as they are, but for their letters' case."""
    return f"[0-9]{{{form.length}}}" if form.kind is IdKind.DIGITS else _PLAIN_TEXT


def _canonical(form: IdForm, field: str, folded: str) -> str:
    """SQL of an id that is not plain, in its form; of another form, as it shows."""
    if form.kind is IdKind.DIGITS:
        shown = f"nullif(regexp_replace({field}, '{_HIDDEN}', '', 'g'), '')"
        point = r"(\.0*)?" if (form.length or 0) <= EXACT_FLOAT else ""
        short = f"regexp_full_match({shown}, '0*[0-9]{{1,{form.length}}}{point}')"
        digits = f"lpad(ltrim(split_part({shown}, '.', 1), '0'), {form.length}, '0')"
        return f"CASE WHEN {short} THEN {digits} ELSE {shown} END"
    shown = f"regexp_replace({field}, '{_INVISIBLE}', '', 'g')"
    shown = f"trim(regexp_replace({shown}, '{_BLANK}+', ' ', 'g'))"
    return f"nullif(nfc_normalize({folded}(nfc_normalize({shown}))), '')"
