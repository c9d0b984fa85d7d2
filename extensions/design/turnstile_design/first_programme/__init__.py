"""What `turnstile new` and `turnstile look` make of delivered files and public sources."""
