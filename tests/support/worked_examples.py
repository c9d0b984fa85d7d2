"""The examples that a package's README and guide give in Python and SQL, run as its readers do."""

import re
import subprocess
import sys
from pathlib import Path


def run_examples(package: Path) -> int:
    """Run each in the package's folder; return how many there are."""
    first, guide = ((package / name).read_text() for name in ("README.md", "docs/GUIDE.md"))
    examples = re.findall(r"```python\n(.*?)```", first + guide, re.DOTALL)
    queries = re.findall(r"```sql\n(.*?)```", first, re.DOTALL)
    examples += [f"import duckdb; print(duckdb.sql({query!r}))" for query in queries]
    for example in examples:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-W", "error::FutureWarning", "-c", example],
            cwd=package,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    return len(examples)
