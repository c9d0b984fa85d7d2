"""The exact integer samplers, each with the proof of its loss beside it."""
