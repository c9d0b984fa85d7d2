"""Estimates: everything that turns sealed integers into what people read; post-processing, free."""
