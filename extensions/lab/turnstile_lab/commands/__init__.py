"""Commands that the lab brings."""
