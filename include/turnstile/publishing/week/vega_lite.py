"""Charts in Vega-Lite as plain values, drawn by vl-convert without a browser and without a network.

A chart library writes the same values, and importing one costs more CPU time than drawing them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Values = dict[str, Any]
_DEFINED = re.compile(r'<(?:linearGradient|radialGradient|clipPath|pattern) id="([^"]+)"')
_USED = re.compile(r'(="url\(#|<\w+ id=")([^")]+)')
_WRITTEN_FOR = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json",
    "config": {"view": {"continuousWidth": 300, "continuousHeight": 300}},
}


def quantity(field: str, **said: object) -> Values:
    """Return a channel that shows a number."""
    return {"field": field, "type": "quantitative", **said}


def name(field: str, **said: object) -> Values:
    """Return a channel that shows names in no order of their own."""
    return {"field": field, "type": "nominal", **said}


def ordered(field: str, **said: object) -> Values:
    """Return a channel that shows names in their order."""
    return {"field": field, "type": "ordinal", **said}


def rows(table: pd.DataFrame) -> Values:
    """Return a table as the data of a chart; what is not a number is absent."""
    return {
        "values": [
            {
                str(column): None if isinstance(value, float) and math.isnan(value) else value
                for column, value in row.items()
            }
            for row in table.to_dict("records")
        ]
    }


def svg_of(chart: Mapping[str, object]) -> str:
    """Draw a chart as SVG; vl-convert escapes what its texts hold."""
    import vl_convert as vlc

    return _named_by_content(str(vlc.vegalite_to_svg({**_WRITTEN_FOR, **chart})))


def _named_by_content(svg: str) -> str:
    """Name gradients and clips after the picture.

    They come numbered by how many the process drew before, so that the same numbers gave another
    page in another process, and a page of two processes' pictures two of one name.
    """
    names = {name: number for number, name in enumerate(dict.fromkeys(_DEFINED.findall(svg)))}

    def renamed(prefix: str) -> str:
        return _USED.sub(
            lambda use: f"{use[1]}{prefix}{names[use[2]]}" if use[2] in names else use[0], svg
        )

    return renamed(f"of-{hashlib.sha256(renamed('').encode()).hexdigest()[:8]}-")
