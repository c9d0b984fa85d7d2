"""Public witnesses that cosign the log: who they are (tlog-policy), and what is asked of them.

C2SP calls them witnesses; in this house a witness is a folder of ours, so these are cosigners. Each
says that the log grew from what it saw last, and when. A cosigner that is away delays nothing: a
later checkpoint covers what it missed. One that has seen more than we have, or another root, is an
alarm: an old copy was restored, or a twin signs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError
from turnstile.ledger.tlog.checkpoints import Verifier, parse_checkpoint, step_text
from turnstile.ledger.tlog.public_log import PublicLog

if TYPE_CHECKING:  # a fifth of the imports of every command, and few ask cosigners
    import httpx

_TIMEOUT_S = 10
_TRIES = 3
_SIZE_TYPE = "text/x.tlog.size"
_OK, _UNKNOWN, _CONFLICT, _FALSE_PROOF = 200, 404, 409, 422
_OUR_FAULT = {400, 403}


@dataclass(frozen=True, slots=True)
class Cosigner:
    """Who cosigns.

    Args:
        name: in the policy.
        verifier: its key.
        url: prefix that `add-checkpoint` is asked under; None: it is only named.
    """

    name: str
    verifier: Verifier
    url: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question.

    Args:
        name: of the cosigner.
        sentence: what it said, and what to do.
        is_alarm: whether it knows of another history than this ledger's.
    """

    name: str
    sentence: str
    is_alarm: bool = False


def read_policy(path: Path) -> tuple[Cosigner, ...]:
    """Read who is asked: lines `witness NAME KEY URL` of a policy (C2SP tlog-policy).

    Whose word is enough (`group`, `quorum`) is for those to say who verify; a `log` is not needed.

    Raises:
        InputError: a line is none of a policy, or its key is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        rule = "cannot be read; it has to hold lines `witness NAME KEY URL`"
        raise InputError(where=str(path), field="policy", rule=rule) from None
    cosigners = list[Cosigner]()
    for number, line in enumerate(lines, start=1):
        match line.partition("#")[0].split():
            case [] | ["log" | "group" | "quorum", *_]:
                continue
            case ["witness", name, key, *url] if len(url) <= 1 and _is_key(key):
                cosigners.append(Cosigner(name, Verifier.of(key), url[0] if url else None))
            case _:
                rule = "is no line of a policy, such as `witness NAME KEY URL`"
                raise InputError(where=f"{path}, line {number}", field="policy", rule=rule)
    return tuple(cosigners)


def cosigners_of(policy: Path) -> tuple[Cosigner, ...]:
    """Read who is asked; nobody where there is no policy.

    Raises:
        InputError: as `read_policy`.
    """
    return read_policy(policy) if policy.exists() else ()


def ask_all(
    log: PublicLog, cosigners: Iterable[Cosigner], length: Callable[[], int]
) -> Iterator[Answer]:
    """Ask every cosigner for the newest checkpoint; keep what they sign; say what each said.

    Args:
        log: whose checkpoint it is, over the entries that there were when it was signed.
        cosigners: who is asked.
        length: returns how many entries there are now: others may publish meanwhile.
    """
    asked = [cosigner for cosigner in cosigners if cosigner.url is not None]
    sizes = [size for size in log.sizes() if size <= len(log.tree.leaves)]
    if sizes and asked:
        import httpx

        with httpx.Client(timeout=_TIMEOUT_S) as client:
            for cosigner in asked:
                yield _ask(log, sizes[-1], cosigner, client, length)
    log.join()


def _ask(
    log: PublicLog, size: int, cosigner: Cosigner, client: httpx.Client, length: Callable[[], int]
) -> Answer:
    """Ask one cosigner, from the size that it signed last."""
    import httpx

    url = f"{str(cosigner.url).rstrip('/')}/add-checkpoint"
    old = _last_signed(log, cosigner, size)
    for _ in range(_TRIES):
        body = step_text(old, log.tree.consistency(old, size), log.signed(size))
        try:
            got = client.post(url, content=body.encode())
        except httpx.HTTPError as error:
            return _said(cosigner, f"did not answer ({type(error).__name__}); it is asked again")
        stated = _stated_size(got)
        if stated is None:
            return _outcome(log, size, cosigner, got)
        if stated > size:
            problem = f"has signed {stated} entries, this log has {size}"
            if stated <= length():  # by a proof of a newer checkpoint a twin is seen all the same
                return _said(cosigner, f"{problem} and grows meanwhile; it is asked again")
            restored = f"{problem}: an old copy was restored, or a twin signs"
            return _said(cosigner, restored, is_alarm=True)
        old = stated
    return _said(cosigner, "named another size each time; it is asked again")


def _stated_size(got: httpx.Response) -> int | None:
    """Return the size that a cosigner says it signed last; None where it says none."""
    is_size = got.headers.get("content-type", "").startswith(_SIZE_TYPE)
    stated = got.text.strip()
    is_said = got.status_code == _CONFLICT and is_size and re.fullmatch("[0-9]{1,19}", stated)
    return int(stated) if is_said else None


def _outcome(log: PublicLog, size: int, cosigner: Cosigner, got: httpx.Response) -> Answer:
    """Act on an answer that is final."""
    status = got.status_code
    if status == _OK:
        return _kept(log, size, cosigner, got.text)
    if status in {_CONFLICT, _FALSE_PROOF}:
        problem = "has signed another history of this log: look for who signs beside this ledger"
        return _said(cosigner, problem, is_alarm=True)
    if status == _UNKNOWN:
        problem = f"does not know the log {log.begun.origin}; a person enrols it there"
        return _said(cosigner, problem)
    if status in _OUR_FAULT:
        return _said(cosigner, f"refused the request ({status}); is its key or address another?")
    return _said(cosigner, f"answered {status}; it is asked again")


def _kept(log: PublicLog, size: int, cosigner: Cosigner, lines: str) -> Answer:
    """Keep the line of a cosigner, if it is true."""
    try:
        checkpoint = parse_checkpoint(log.signed(size) + lines)
        at = checkpoint.cosigned_at(cosigner.verifier)
    except ValueError:
        at = None
    if at is None:
        return _said(cosigner, "signed nothing under the key that the policy names")
    identity = cosigner.verifier.digits
    signature_lines = [
        line for line in lines.splitlines() if line.startswith(f"— {cosigner.verifier.name} ")
    ]
    log.keep_cosignature(size, identity, at, f"{signature_lines[-1]}\n")
    return _said(cosigner, f"has cosigned {size} entries")


def _last_signed(log: PublicLog, cosigner: Cosigner, size: int) -> int:
    """Return the size that a cosigner signed last, as far as is kept; 0 if it never did."""
    identity = cosigner.verifier.digits
    return max((of for of, by, _ in log.cosigned() if by == identity and of <= size), default=0)


def _said(cosigner: Cosigner, sentence: str, *, is_alarm: bool = False) -> Answer:
    return Answer(cosigner.name, f"{cosigner.name} {sentence}", is_alarm)


def _is_key(line: str) -> bool:
    """Return whether a line is a verifier key."""
    try:
        Verifier.of(line)
    except ValueError:
        return False
    return True
