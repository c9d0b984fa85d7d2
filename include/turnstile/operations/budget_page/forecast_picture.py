"""The forecast of caps as a picture of its own: what `turnstile ledger forecast --plot` writes."""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.ledger.balances.forecast import CapForecast
from turnstile.operations.budget_page.page_templates import render
from turnstile.operations.budget_page.picture_shapes import burn_down


def forecast_svg(forecasts: Sequence[CapForecast]) -> str:
    """Draw what is left of every cap that fills up, past and forecast.

    Returns:
        An SVG document, one panel a cap; without scripts or fonts of its own.
    """
    panels = [(forecast, burn_down(forecast)) for forecast in forecasts if len(forecast.path) > 1]
    return render("forecast.svg", root="", panels=panels)
