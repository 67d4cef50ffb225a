"""Presets: one TOML file a model and SAE pair, read by neuroscope_jax.config.load_preset."""
