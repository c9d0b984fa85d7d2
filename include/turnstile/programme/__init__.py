"""What a programme promises: frozen records, strict YAML, public domains."""
