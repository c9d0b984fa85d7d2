"""Counts lines of code by room and holds them to `size.txt`; exits 1 if a room is above its budget.

A line of code is one that is neither blank nor comment, docstring or import. A change that needs
more raises the number in the same commit, and says in one line what a user gets for it.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "include/turnstile"
EXTENSIONS = "extensions"
