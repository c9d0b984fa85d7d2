"""The examples that a package's README and guide give in Python and SQL, run as its readers do."""

import json
import re
import subprocess
import sys
from pathlib import Path

# Each in a process of its own, which finds imported what readers import first.
_EACH_ALONE = """
import json, os, sys
import duckdb, pandas
for example in json.load(sys.stdin):
    sys.stdout.flush()
    if not (child := os.fork()):
        exec(compile(example, "example", "exec"), {"__name__": "__main__"})
        sys.exit()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"fails: {example}")
    print(end="\\0")
"""


def run_examples(package: Path) -> int:
    """Run each in the package's folder; return how many there are."""
    first, guide = ((package / name).read_text() for name in ("README.md", "docs/GUIDE.md"))
    examples = re.findall(r"```python\n(.*?)```", first + guide, re.DOTALL)
    queries = re.findall(r"```sql\n(.*?)```", first, re.DOTALL)
    examples += [f"import duckdb; print(duckdb.sql({query!r}))" for query in queries]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error::FutureWarning", "-c", _EACH_ALONE],
        cwd=package,
        input=json.dumps(examples),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\0")[:-1]
    assert len(printed) == len(examples)
    assert all(said.strip() for said in printed)
    return len(examples)
