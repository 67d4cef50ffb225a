"""Language models: architecture, weights, tokenizer and chat template."""
