"""From canonical rows to exact tables: bounded, counted into the public domain, never printed."""
