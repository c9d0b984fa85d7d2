"""`turnstile lab`: ways to release counts badly, each broken before your eyes."""

from __future__ import annotations

import argparse
from pathlib import Path

from turnstile.errors import InputError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "lab", help="lessons: known-bad releases of made-up counts, defeated one by one"
    )
    parser.add_argument("lesson", nargs="?", help="name of one lesson; all by default")
    parser.add_argument("--to", type=Path, help="folder for lab.html and the pictures")
    parser.set_defaults(command=_lab)


def _lab(args: argparse.Namespace) -> int:
    """Run the lessons."""
    from turnstile_lab.lessons import LESSONS
    from turnstile_lab.page import write_page

    known = {lesson.__name__: lesson for lesson in LESSONS}
    if args.lesson is not None and args.lesson not in known:
        rule = f"{args.lesson!r} is no lesson; the lessons are {', '.join(known)}"
        raise InputError(where="turnstile lab", field="lesson", rule=rule)
    chosen = [known[args.lesson]] if args.lesson is not None else list(known.values())
    lessons = [lesson() for lesson in chosen]
    for number, lesson in enumerate(lessons, start=1):
        print(f"{number}. {lesson.title}  [{lesson.name}]")
        print(f"   formula: {lesson.formula}")
        print(f"   attack:  {lesson.attack}")
        print(f"   instead: {lesson.remedy}\n")
    if args.to is not None:
        print(write_page(lessons, args.to))
    return 0
