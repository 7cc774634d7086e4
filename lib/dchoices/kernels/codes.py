"""The integers by which a kernel knows the policies without memory; apart, as a list of policies needs no numba."""

SHORTEST_OF_D, SHORTEST_OF_D_DISTINCT, JOIN_SHORTEST, JOIN_IDLE, USER = range(5)
