"""From the files of a week to a snapshot of canonical rows, nothing lost on the way."""
