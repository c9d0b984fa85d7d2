"""Lower bounds on what a mechanism really costs, each with its confidence."""
