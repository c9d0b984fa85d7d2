"""Health check: exits 0 if an address answers, and says that a component is healthy.

Usage: `answers.py URL [COMPONENT]`. Imports nothing of Airflow: that would cost four seconds of a
core at every check.
"""

import json
import sys
import urllib.request

_TIMEOUT_S = 8

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(sys.argv[1], timeout=_TIMEOUT_S) as answer:
    for component in sys.argv[2:]:
        state = json.load(answer)[component]["status"]
        if state != "healthy":
            sys.exit(f"{component} is {state}")
