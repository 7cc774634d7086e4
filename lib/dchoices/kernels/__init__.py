"""Jitted code: plain arrays and scalars in, arrays filled. Imports nothing else of the package."""
