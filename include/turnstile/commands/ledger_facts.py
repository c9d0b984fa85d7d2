"""`turnstile ledger` actions that write a fact: each with a person and a reason, for ever."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.commands.ledger_opened import (
    UNSIGNED,
    open_to_write,
    publish_all_series,
    publish_list,
    publish_series,
    publish_series_or_records,
    require_is_over,
    require_not_before,
    set_damage_aside,
    who_asks,
)
from turnstile.commands.printed_json import print_json
from turnstile.errors import InputError, StoreError, TurnstileError
from turnstile.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstile.ledger.ledger import Ledger
    from turnstile.ledger.records import Attempt, ReleaseKey

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - no public name
    Command = Callable[[argparse.Namespace], int]


def add_facts(actions: Actions) -> None:
    """Add the actions."""
    void = _add(actions, "void", "let a hold go that no run will take up; costs nothing", _void)
    void.add_argument("key", nargs="?", help="opal/2016-W30/r0")
    void.add_argument("--older-than", type=float, metavar="HOURS", help="every hold that is older")
    burn = _add(actions, "burn", "give up a draw that no process works on; stays charged", _burn)
    burn.add_argument("key", help="opal/2016-W30/r0")
    withdraw = _add(actions, "withdraw", "flag a public release as withdrawn; no refund", _withdraw)
    withdraw.add_argument("key", help="opal/2016-W30/r0")
    withdraw.add_argument("--public-note", default="", help="what the public is told; published")
    missing = _add(actions, "no-release", "state that a period has no release", _no_release)
    missing.add_argument("key", help="opal/2016-W30/r0")
    recover = _add(
        actions, "recover", "bring back what witnesses, packages and sealed files prove", _recover
    )
    recover.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="PROGRAMME=GROUP",
        help="budget group of a programme that nothing else names",
    )
    recover.add_argument(
        "--end-draws", action="store_true", help="those that a process works on now, too"
    )
    _add(actions, "rotate-key", "sign with a new key from now on", _rotate_key)
    begun = _add(actions, "begin-log", "another transparency log, under a new key", _begin_log)
    begun.add_argument("--origin", help="its name for ever, as transport.example.org/opal")
    again = actions.add_parser(
        "republish", help="make series, list and log again of what the ledger says; costs nothing"
    )
    again.add_argument("--json", action="store_true", help="for scripts")
    again.set_defaults(command=_republish)
    asked = actions.add_parser("cosign", help="ask public witnesses to cosign the log")
    asked.set_defaults(command=_cosign)
    _add(
        actions,
        "rotate-bounding-key",
        "a new key for what is kept of private files; the old one, if it is there, verifies",
        _rotate_bounding_key,
    )
    _add(actions, "confirm-clock", "the clock is right, though entries are later", _confirm_clock)
    admit = _add(
        actions, "admit-family", "let a second budget group read a landing path", _admit_family
    )
    admit.add_argument("family", help="the second budget group")
    admit.add_argument("--landing", required=True, help="its landing pattern")
    witness = actions.add_parser("witness", help="folders that keep notes and entries")
    actions = witness.add_subparsers(required=True, metavar="ACTION")
    added = _add(actions, "add", "take a folder of TURNSTILE_WITNESS as a witness", _add_witness)
    added.add_argument("folder", type=Path)
    removed = _add(actions, "remove", "let a witness go", _remove_witness)
    removed.add_argument("witness", help="its folder, or the first digits of its name")


def _add(actions: Actions, name: str, about: str, command: Command) -> argparse.ArgumentParser:
    """Add one action, with who says so and why."""
    parser = actions.add_parser(name, help=about)
    parser.add_argument("--person", help="who says so; you, by default")
    parser.add_argument("--reason", type=_words, required=True, help="why; internal, in the ledger")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=command)
    return parser


def _words(text: str) -> str:
    """Return a reason.

    Raises:
        ArgumentTypeError: it says nothing.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("say why: it stays in the ledger for ever")
    return text


def _said(args: argparse.Namespace) -> tuple[str, str]:
    """Return person and reason."""
    return args.person or who_asks("--person"), args.reason


def _void(args: argparse.Namespace) -> int:
    """Release a hold, or every old one."""
    person, reason = _said(args)
    if args.older_than is not None:
        age = timedelta(hours=args.older_than)
        voided = open_to_write().void_stale(age, reason, person=person)
        return _print(args, {"void": [str(attempt.key) for attempt in voided]})
    lead = _attempt(args)
    return _state(args, open_to_write().void(lead.attempt_id, reason, person=person))


def _burn(args: argparse.Namespace) -> int:
    """Give up a draw."""
    person, reason = _said(args)
    lead = _attempt(args)
    return _state(args, open_to_write().burn(lead.attempt_id, reason, person=person))


def _attempt(args: argparse.Namespace) -> Attempt:
    """Return the attempt that leads a key.

    Raises:
        InputError: nothing was ever reserved under it.
    """
    key = _key(args)
    attempt = open_to_write().find(key)
    if attempt is None:
        rule = f"nothing was ever reserved under {key}; `turnstile ledger entries` lists what was"
        raise InputError(where="ledger", field="key", rule=rule)
    return attempt


def _key(args: argparse.Namespace) -> ReleaseKey:
    """Read the release that an action is about.

    Raises:
        InputError: none is named, or it is no release key.
    """
    from turnstile.ledger.records import ReleaseKey

    if args.key is None:
        rule = "name a release, opal/2016-W30/r0, or --older-than HOURS"
        raise InputError(where="ledger", field="key", rule=rule)
    try:
        return ReleaseKey.parse(args.key)
    except ValueError:  # of letters that no name has
        rule = f"{args.key!r}: write opal/2016-W30/r0"
        raise InputError(where="ledger", field="key", rule=rule) from None


def _withdraw(args: argparse.Namespace) -> int:
    """Flag a publication, in the ledger and in the public zone."""
    key, said = _key(args), _said(args)
    ledger = open_to_write()
    published = ledger.week(key.programme, key.period).published
    if any(revision.withdrawn for revision in published if revision.key == key):
        print(f"{key} was withdrawn before: what was said of it then stands", file=sys.stderr)
    attempt = ledger.withdraw(key, *said, public_note=args.public_note)
    if problem := publish_series_or_records(ledger, attempt.key.programme):
        print(
            f"warning: the record is public, and series stay as they were: {problem}; once that is "
            "mended, turnstile ledger republish",
            file=sys.stderr,
        )
    if (now := ledger.week(key.programme, key.period).in_force) is not None:
        too = f"turnstile ledger withdraw {now.key} --reason TEXT takes it back too"
        print(f"{now.key} is in force again; {too}", file=sys.stderr)
    return _state(args, attempt)


def _no_release(args: argparse.Namespace) -> int:
    """State a missing release, in the ledger and in the public zone; an entry is for ever."""
    key = _key(args)
    require_is_over(key)
    ledger = open_to_write()
    require_not_before(key, ledger)
    entry = ledger.declare_no_release(key, *_said(args))
    publish_series(ledger, key.programme)
    path = Settings.from_environment().public / key.programme / key.period
    shown = str(path / f"no-release-r{key.revision}.json")
    return _print(args, {"key": str(key), "entry": entry.sequence, "published": shown})


def _recover(args: argparse.Namespace) -> int:
    from turnstile.pipeline.landing.delivered_files import delivered_files
    from turnstile.pipeline.private_zone.private_verification import require_private
    from turnstile.release.zone_copies import zones

    settings = Settings.from_environment()
    require_private(settings, "ledger recover", "files of lost releases")
    families = dict(pair.split("=", 1) for pair in args.family if "=" in pair)
    if len(families) != len(args.family):
        raise InputError(where="ledger", field="--family", rule="write PROGRAMME=GROUP")
    aside, remains = set_damage_aside()
    ledger = open_to_write(new=True)
    unknown_files = zones(settings).fetch_delivered()
    done = ledger.recover(
        *_said(args),
        families=families,
        remains=remains,
        delivered=delivered_files(settings),
        ends_draws=args.end_draws,
    )
    here_alone = [*zones(settings).keep_sealed(done.sealed)]
    left = publish_all_series(ledger)
    _print(
        args,
        {
            "damaged_database": aside,
            "entries_from_witnesses": done.entries,
            "losses_declared": list(done.declared),
            "perhaps_drawn_and_not_charged": list(done.unknown),
            "published_again": list(done.published),
            "attempts_ended": list(done.ended),
            "entries_lost": done.superseded,
            "files_lost": list(done.lost),
            "files_set_aside": list(map(str, done.aside)),
            "sealed_bytes_in_this_home_alone": here_alone,
            "delivered_files_not_known_of": list(unknown_files),
            "series_not_made": left,
        },
    )
    is_unsigned = any(problem.startswith(UNSIGNED) for problem in left)
    return 4 if done.unknown or is_unsigned else 0


def _rotate_key(args: argparse.Namespace) -> int:
    """Take up a new key."""
    ledger = open_to_write()
    line = ledger.rotate_key(*_said(args)).strip()
    _send_once(ledger, "the new key")
    return _print(args, {"public_key": line})


def _begin_log(args: argparse.Namespace) -> int:
    """Begin another transparency log."""
    ledger = open_to_write()
    begun = ledger.begin_log(*_said(args), args.origin)
    _send_once(ledger, f"the log {begun.origin}")
    return _print(args, {"origin": begun.origin, "public_key": begun.public_line.strip()})


def _send_once(ledger: Ledger, what: str) -> None:
    """Sign the list under what is new, and send it.

    Raises:
        TurnstileError: a store does not take it: not to be asked for a second time.
    """
    try:
        publish_list(ledger)
    except StoreError as error:
        why = str(error).partition("; what is there stays")[0]
        problem = f"{what} is in force, and not public yet: {why}"
        once = "turnstile ledger republish where the store can be written; do not run this again"
        raise TurnstileError(f"{problem}; {once}") from None


def _republish(args: argparse.Namespace) -> int:
    """Make again what is public beside packages; exit 4 if some of it cannot be made."""
    left = publish_all_series(open_to_write())
    _print(args, {"series_not_made": left})
    return 4 if left else 0


def _cosign(_: argparse.Namespace) -> int:
    """Ask the cosigners; exit 4 if one knows of another history."""
    answers = publish_list(open_to_write())
    for answer in answers:
        sys.stdout.write(f"{answer.sentence}\n")
    if not answers:
        sys.stdout.write("nobody is asked: log-policy.txt beside the signing key names cosigners\n")
    return 4 if any(answer.is_alarm for answer in answers) else 0


def _rotate_bounding_key(args: argparse.Namespace) -> int:
    """Take up a new bounding key."""
    from turnstile.release.zone_copies import zones

    take_up = zones(Settings.from_environment()).replace_bounding_key
    taken = open_to_write().name_bounding_key(take_up, *_said(args))
    lost: dict[str, object] = {"declared_lost": [*taken.lost]} if taken.lost else {}
    return _print(args, {"bounding_key": taken.name, **lost})


def _confirm_clock(args: argparse.Namespace) -> int:
    return _print(args, {"confirmed_at": open_to_write().confirm_clock(*_said(args)).at})


def _admit_family(args: argparse.Namespace) -> int:
    """Let a second budget group in."""
    entry = open_to_write().admit_family(args.landing, args.family, *_said(args))
    return _print(args, {"family": args.family, "landing": args.landing, "entry": entry.sequence})


def _add_witness(args: argparse.Namespace) -> int:
    name = open_to_write().add_witness(args.folder, *_said(args))
    return _print(args, {"witness": name, "folder": str(args.folder)})


def _remove_witness(args: argparse.Namespace) -> int:
    return _print(args, {"removed": open_to_write().remove_witness(args.witness, *_said(args))})


def _state(args: argparse.Namespace, attempt: Attempt) -> int:
    """Say how a release stands now."""
    if args.json:
        return _print(args, {"key": str(attempt.key), "state": attempt.state_name})
    sys.stdout.write(f"{attempt.key}: {attempt.state_name}\n")
    return 0


def _print(args: argparse.Namespace, said: dict[str, object]) -> int:
    """Write what was done, a line a figure."""
    if args.json:
        print_json(said)
    else:
        for name, value in said.items():
            shown = ", ".join(value) or "none" if isinstance(value, list) else value
            sys.stdout.write(f"{name.replace('_', ' ')}: {shown}\n")
    return 0
