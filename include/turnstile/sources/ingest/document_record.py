"""What a reader of documents and messages yields: a record, or what is none."""

from __future__ import annotations

from collections.abc import Mapping

Found = Mapping[str, str] | bytes
"""Texts by the path of their column; or what is no record, as it came."""
