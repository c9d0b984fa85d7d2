"""Sub-commands of the console script, one module each: `add_parser` and what it runs."""
