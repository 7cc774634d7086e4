"""Closed forms, the fluid model and the exact finite chain. Imports kernels at most."""
