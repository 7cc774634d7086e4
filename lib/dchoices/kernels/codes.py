"""The integers by which kernels know policies without memory and service laws; apart, as lists need no numba."""

SHORTEST_OF_D, SHORTEST_OF_D_DISTINCT, JOIN_SHORTEST, JOIN_IDLE, USER = range(5)

EXPONENTIAL, DETERMINISTIC, ERLANG, HYPEREXPONENTIAL, WEIBULL, PARETO = range(6)
