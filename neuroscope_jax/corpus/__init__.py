"""Corpora: where texts come from, and the passes over them."""
