"""Second places of the ledger: witnesses, signed notes, traces on disk, and the way back."""
