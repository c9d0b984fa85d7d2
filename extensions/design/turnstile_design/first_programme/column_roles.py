"""What becomes of every column of a delivered file, for the decision sheet: `column_roles.csv`.

Fields are those of the layouts; every other column is never read.
"""

from __future__ import annotations

import csv
from pathlib import Path

NEVER_READ = "dropped: never read"
_LINES = Path(__file__).with_name("column_roles.csv").read_text(encoding="utf-8").splitlines()
ROLES = {row["field"]: row["role"] for row in csv.DictReader(_LINES)}
