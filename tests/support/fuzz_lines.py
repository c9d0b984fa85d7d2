"""Coverage-guided fuzzing of lines; needs atheris, which is not in the lock.

    python tests/support/fuzz_lines.py -max_total_time=300

Each input is a file of three columns; whatever it holds, every physical line is read as if it were
alone, or set aside. Arguments are libFuzzer's. `--fault` puts the swallowed line back: it must be
found within seconds.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

_LINES_AT_MOST = 12
_SEEDS = (b'1,"2",3', b'1,"2\n3",4', b'"a""b",,\r', b'a,b"c,d\n,,', b"\0,\xff,\xc3\xa9", b'"')


def main() -> None:
    """Fuzz until the budget is spent, or a file is read in two ways."""
    import atheris  # type: ignore[import-not-found] # where it runs

    with atheris.instrument_imports(include=["turnstile.sources", "lines_compared"]):
        from lines_compared import check_a_file, opened_reader

        from turnstile.sources.ingest import lines
    arguments = [argument for argument in sys.argv if argument != "--fault"]
    if len(arguments) < len(sys.argv):
        lines._mark_unbalanced = lambda *_: None
    with tempfile.TemporaryDirectory() as corpus, opened_reader() as read:
        for number, seed in enumerate(_SEEDS):
            (Path(corpus) / str(number)).write_bytes(seed)

        def one_file(content: bytes) -> None:
            raw_lines = content.split(b"\n")[:_LINES_AT_MOST]
            check_a_file(read, raw_lines, b"\n")

        atheris.Setup([*arguments, f"-artifact_prefix={corpus}/", corpus], one_file)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
