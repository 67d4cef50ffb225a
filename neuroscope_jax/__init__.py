"""Neuroscope: watch a language model think, one token and its SAE features at a time."""

__version__ = "0.1.0"
