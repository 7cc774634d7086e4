"""Shared by all tests."""

from hypothesis import settings

# The same examples in every run, and no limit on the time of one: a busy machine is no fault of the code.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
