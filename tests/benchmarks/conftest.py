"""The benchmarks are not installed with the package; they are found from the repository's folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
