"""The engine: token ids in, token ids with their features out. It knows no text and no HTTP."""
