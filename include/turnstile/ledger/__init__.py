"""What every passenger unit has lost: facts, ledger accounts, and their witnesses."""
