"""What a chart costs by the page's templates and by Altair: CPU time, memory, bytes (ADR 9).

Each is measured in a process of its own, as a task and the page's server meet it. Run:
`python benchmarks/pictures.py`.
"""

from __future__ import annotations

import subprocess
import sys

CHARTS = 20
_MEASURED = """
import resource, sys, time
import numpy, pandas
def cost():
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
points = [{{"week": n, "rho": 0.1 * n, "series": "card"}} for n in range(52)]
began, memory = cost()
{make}
picture = draw()
first, memory_after = cost()
for _ in range({charts}):
    draw()
print(first - began, (cost()[0] - first) / {charts}, memory_after - memory, len(picture))
"""
_TEMPLATE = """
from turnstile.assessment.report.pictures import lines
def draw():
    return lines(points, x="week", y="rho", title="Spent")
"""
_ALTAIR = """
import altair as alt, vl_convert
def draw():
    chart = alt.Chart(pandas.DataFrame(points), title="Spent").mark_line()
    chart = chart.encode(x="week:Q", y="rho:Q", color="series:N")
    return vl_convert.vegalite_to_svg(chart.to_dict())
"""


def main() -> None:
    """Print a line for each way."""
    print("| chart by | first, CPU s | each further, CPU ms | memory, MiB | SVG, bytes |")
    print("|---|---|---|---|---|")
    for name, make in (("template", _TEMPLATE), ("Altair", _ALTAIR)):
        program = _MEASURED.format(make=make, charts=CHARTS)
        done = subprocess.run(  # noqa: S603 - our own interpreter and script
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        first, each, memory, size = map(float, done.stdout.split())
        print(f"| {name} | {first:.2f} | {each * 1000:.1f} | {memory:.0f} | {size:,.0f} |")


if __name__ == "__main__":
    main()
