"""What a forger, a thief or an accident does to a site: each a change that tests put to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from disaster_site import Site
from ledger_asks import week_number
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.entries import EntryKind, make_entry, read_entry

Change = Callable[[Site, Stores], None]


def sql(*statements: str) -> Change:
    return lambda site, stores: stores.tamper(site.url, *statements)


def edited(path: str, old: str, new: str) -> Change:
    """Replace text in the one file of a pattern below the site."""

    def act(site: Site, _: Stores) -> None:
        (file,) = site.root.glob(path)
        file.chmod(0o644)
        content = file.read_text()
        assert old in content
        file.write_text(content.replace(old, new, 1))

    return act


def added(path: str) -> Change:
    """Put a file that nobody published."""

    def act(site: Site, _: Stores) -> None:
        (site.root / path).parent.mkdir(exist_ok=True)
        (site.root / path).write_text("card,time\n1,2\n")

    return act


def linked(path: str, target: str) -> Change:
    """Put a link."""
    return lambda site, _: (site.root / path).symlink_to(site.root / target)


def removed(path: str) -> Change:
    def act(site: Site, _: Stores) -> None:
        targets = list(site.root.glob(path))
        assert targets
        for target in targets:
            shutil.rmtree(target) if target.is_dir() else target.unlink()

    return act


def swapped(one: str, other: str) -> Change:
    """Put two files or folders into each other's place."""

    def act(site: Site, _: Stores) -> None:
        (site.root / one).rename(site.root / "between")
        (site.root / other).rename(site.root / one)
        (site.root / "between").rename(site.root / other)

    return act


def replaced(path: str, by: str) -> Change:
    """Put a copy of another file into the place of one."""

    def act(site: Site, _: Stores) -> None:
        (site.root / path).unlink()
        shutil.copy(site.root / by, site.root / path)

    return act


def appended_to(path: str, text: str) -> Change:
    """Write more at the end of a file."""

    def act(site: Site, _: Stores) -> None:
        (site.root / path).chmod(0o644)
        with (site.root / path).open("a") as file:
            file.write(text)

    return act


def link_to_itself(path: str) -> Change:
    """Move a file or folder away, and put a link to it into its place."""

    def act(site: Site, _: Stores) -> None:
        (site.root / path).rename(site.root / "elsewhere")
        (site.root / path).symlink_to(site.root / "elsewhere")

    return act


def pipe_at(path: str) -> Change:
    """Put a pipe into the place of a file, or beside others: whoever opens it waits for ever."""

    def act(site: Site, _: Stores) -> None:
        (site.root / path).unlink(missing_ok=True)
        os.mkfifo(site.root / path)

    return act


def recomputed(change: Callable[[list[dict[str, object]]], object], *, notes: bool) -> Change:
    """Rewrite entries and the whole chain after them, and every table beside: a perfect forger.

    Args:
        change: what is done to the bodies, with `kind` and `at`.
        notes: whether the forger also takes notes and shipped entries away.
    """

    def act(site: Site, stores: Stores) -> None:
        entry_rows = rows(site.url, "SELECT record, hash FROM entry ORDER BY sequence")
        facts = []
        for record, written in entry_rows:
            entry = read_entry(record, written)
            facts.append({"at": entry.at, "kind": entry.kind, "body": dict(entry.body)})
        change(facts)
        head, statements = (0, "0" * 64), ["DELETE FROM entry"]
        for fact in facts:
            entry = make_entry(head, fact["at"], fact["kind"], fact["body"])  # type: ignore[arg-type]
            head = (entry.sequence, entry.hash)
            key, attempt = quoted(entry.key), quoted(entry.attempt_id)
            record = quoted(entry.record)
            statements.append(
                f"INSERT INTO entry VALUES ({entry.sequence}, '{entry.kind.value}', {key}, "
                f"{attempt}, {record}, '{entry.hash}')"
            )
        statements.append(f"UPDATE head SET sequence = {head[0]}, hash = '{head[1]}'")
        if stores.kind == "postgresql":
            statements.insert(
                0, "ALTER TABLE attempt DROP CONSTRAINT attempt_reserved_sequence_fkey"
            )
        stores.tamper(site.url, *statements)
        if notes:
            for file in (*site.home.glob("public/**/*.note"), *site.witness.glob("*/*")):
                file.unlink()

    return act


def rows(url: str, query: str) -> list[tuple[str, str]]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return [(row[0], row[1]) for row in connection.execute(text(query))]


def quoted(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def cheaper(facts: list[dict[str, object]]) -> None:
    for fact in facts:
        for posting in fact["body"].get("postings", ()):  # type: ignore[attr-defined]
            posting[2] //= 4


def as_bus(facts: list[dict[str, object]]) -> None:
    for fact in facts:
        for posting in fact["body"].get("postings", ()):  # type: ignore[attr-defined]
            posting[0] = "bus" if posting[0] == "card" else posting[0]


def without_week_1(facts: list[dict[str, object]]) -> None:
    key = f"opal/{week_number(1)}/r0"
    facts[:] = [fact for fact in facts if fact["body"].get("key") != key]  # type: ignore[attr-defined]


def key_replaced(where: str) -> Change:
    """Another key in one of the places that hold one."""

    def act(site: Site, _: Stores) -> None:
        other = Signer.make(site.root / "thief.pem")
        if where == "private":
            shutil.move(site.root / "thief.pem", site.home / "ledger-key.pem")
        else:
            (site.root / where / "ledger.pub").write_text(other.public_line)

    return act


def second_package(site: Site, _: Stores) -> None:
    """A package of a correction that nobody made, put beside the true one."""
    week_folder = site.home / "public/opal" / week_number(0)
    shutil.copytree(week_folder / "r0", week_folder / "r1")


def witness_swapped(site: Site, _: Stores) -> None:
    """An empty folder where the witness was mounted."""
    site.witness.rename(site.root / "unmounted")
    site.witness.mkdir()


def appended(kind: EntryKind, body: dict[str, str], *, at: str | None = None) -> Change:
    """One entry more at the end of the chain, as a perfect forger writes it, or a clock ahead.

    Args:
        kind: of the entry.
        body: of the entry.
        at: its time; that of the entry before it if None.
    """

    def act(site: Site, stores: Stores) -> None:
        sequence, head = rows(site.url, "SELECT sequence, hash FROM head")[0]
        last = read_entry(*rows(site.url, "SELECT record, hash FROM entry ORDER BY sequence")[-1])
        entry = make_entry((int(sequence), head), at or last.at, kind, body)
        key, attempt = quoted(entry.key), quoted(entry.attempt_id)
        stores.tamper(
            site.url,
            f"INSERT INTO entry VALUES ({entry.sequence}, '{kind.value}', {key}, {attempt}, "
            f"{quoted(entry.record)}, '{entry.hash}')",
            f"UPDATE head SET sequence = {entry.sequence}, hash = '{entry.hash}'",
        )

    return act


def guard_gone(site: Site, stores: Stores) -> None:
    on = " ON entry" if stores.kind == "postgresql" else ""
    with create_engine(site.url, poolclass=NullPool).begin() as connection:
        connection.execute(text(f"DROP TRIGGER entry_no_delete{on}"))


def guard_that_never_asks(site: Site, stores: Stores) -> None:
    """A guard under its own name and words, on a condition that is never true."""
    if stores.kind == "postgresql":
        made = [
            "DROP TRIGGER entry_no_delete ON entry",
            (
                "CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry FOR EACH ROW WHEN (false) "
                "EXECUTE FUNCTION facts_stay()"
            ),
        ]
    else:
        made = [
            "DROP TRIGGER entry_no_delete",
            (
                "CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry WHEN 0 "
                "BEGIN SELECT RAISE(ABORT, 'facts stay'); END"
            ),
        ]
    with create_engine(site.url, poolclass=NullPool).begin() as connection:
        for statement in made:
            connection.execute(text(statement))
