"""Turnstile: recurring, differentially private releases of public-transport data."""

import os

# NumPy reads it when it is imported. Our matrices are small: a second thread of the linear algebra
# only waits for the first, busily, and takes its core from whoever else has work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251
