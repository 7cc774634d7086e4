"""The claims: `engine` turns measured cells into verdicts, `catalogue` lists all, the rest hold a function each.

A new claim is a function in the module of its subject; a new module is named in `catalogue`.
"""
