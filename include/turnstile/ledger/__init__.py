"""What every passenger unit has lost: facts, books of accounts, and their witnesses."""
