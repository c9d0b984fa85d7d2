"""Tables of counts that others published, as an attacker reads them."""
