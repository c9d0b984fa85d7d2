"""What the private zone holds, how long, and whether it is what the ledger says."""
