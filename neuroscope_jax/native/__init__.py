"""The one kernel that XLA:CPU lacks, in C++: a product of few rows with a weight, at the speed of memory."""
