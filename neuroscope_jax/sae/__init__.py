"""Sparse autoencoders: the encoder and the readers of its file formats."""
