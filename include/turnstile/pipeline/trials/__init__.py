"""Judged before any charge, without rows: canaries, small worlds, rehearsals, gain and room."""
