"""The studies, one notebook each. The report is about all of them; a configuration may name a few."""

STUDIES = (
    "trajectories", "ladder", "concentration", "fluid", "portrait", "fixed_points", "bound_grid", "convergence",
    "stationary", "policies", "heavy_traffic", "constant_d", "recursion", "service", "finite_size", "fluctuations",
    "replacement",
)  # fmt: skip
