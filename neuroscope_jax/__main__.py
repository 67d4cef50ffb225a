"""`python -m neuroscope_jax …` is the command line."""

import sys

from neuroscope_jax.cli import main

if __name__ == "__main__":
    sys.exit(main())
