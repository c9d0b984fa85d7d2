"""What every account has lost and may lose: amounts, caps, forecasts."""
