"""Compression of torch modules in training. Needs torch. docs/training.md is the guide."""
