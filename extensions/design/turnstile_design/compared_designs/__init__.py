"""Designs at one loss, and what each would tell: what `turnstile plan` prints."""
