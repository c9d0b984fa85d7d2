"""Periods that a programme is released over, and when each is final."""
