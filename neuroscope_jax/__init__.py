"""Neuroscope: watch a language model think, one token and its SAE features at a time."""

import os

__version__ = "0.1.0"

# XLA:CPU calls every program it takes from the compile cache unsafe, for want of features that are its own hints and no
# CPU's (openxla/xla#44565): several long lines on stderr at each start. Read when jaxlib is loaded, so it is set first.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
