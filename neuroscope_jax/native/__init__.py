"""What XLA:CPU lacks, in C++: few rows times a weight, and attention over a cache, at the speed of memory."""
