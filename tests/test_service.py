"""Service laws against scipy's distributions."""

import math

import dchoices as dc
import numpy as np
import pytest
from dchoices.kernels import service as kernel
from dchoices.kernels import sfc64
from dchoices.service import as_law
from scipy import stats

SIGMAS = 4.4  # one chance in about 10^5 per comparison that a right sample is refused
SAMPLES = 200_000


class Hyperexponential:
    """Two exponential phases, either doing half of the work, with the given squared coefficient of variation."""

    def __init__(self, scv):
        # p m_1 = (1-p) m_2 = 1/2, so E[S²] = (1/p + 1/(1-p))/2 = scv + 1, and p(1-p) = 1/(2 scv + 2).
        p = (1 + math.sqrt(1 - 2 / (scv + 1))) / 2
        self.phases = [(p, 1 / (2 * p)), (1 - p, 1 / (2 * (1 - p)))]

    def cdf(self, x):
        return sum(p * stats.expon(scale=mean).cdf(x) for p, mean in self.phases)

    def mean(self):
        return sum(p * mean for p, mean in self.phases)

    def var(self):
        return sum(2 * p * mean**2 for p, mean in self.phases) - 1


LAWS = [
    ("exponential", {}, stats.expon()),
    ("erlang", {"stages": 1}, stats.expon()),
    ("erlang", {"stages": 4}, stats.gamma(4, scale=1 / 4)),
    ("erlang", {"stages": 1000}, stats.gamma(1000, scale=1 / 1000)),
    ("hyperexponential", {"scv": 1.5}, Hyperexponential(1.5)),
    ("hyperexponential", {"scv": 4}, Hyperexponential(4)),
    ("weibull", {"shape": 0.5}, stats.weibull_min(0.5, scale=1 / math.gamma(3))),
    ("weibull", {"shape": 3}, stats.weibull_min(3, scale=1 / math.gamma(1 + 1 / 3))),
    ("pareto", {"shape": 1.2}, stats.pareto(1.2, scale=0.2 / 1.2)),
    ("pareto", {"shape": 2.5}, stats.pareto(2.5, scale=0.6)),
    ("pareto", {"shape": 6.0}, stats.pareto(6, scale=5 / 6)),
]


def sample(law, size=SAMPLES):
    out = np.empty(size)
    kernel.fill((law.code, *law.constants), sfc64.initial_state(np.random.SeedSequence(4)), out)
    return out


@pytest.mark.parametrize(("name", "parameters", "theirs"), LAWS)
def test_laws_have_the_distribution_mean_and_variation_they_say(name, parameters, theirs):
    law = dc.service_law(name, **parameters)
    times = sample(law)
    assert stats.kstest(times, theirs.cdf).pvalue > 1e-4
    assert law.mean == 1.0
    assert theirs.mean() == pytest.approx(1.0)
    assert law.scv == pytest.approx(theirs.var())


@pytest.mark.parametrize(("name", "parameters", "theirs"), [row for row in LAWS if row[1].get("shape", 9) != 1.2])
def test_sample_moments(name, parameters, theirs):
    times = sample(dc.service_law(name, **parameters))
    assert abs(times.mean() - 1) < SIGMAS * times.std() / math.sqrt(SAMPLES)
    if (name, parameters.get("shape")) == ("pareto", 2.5):
        return  # no fourth moment, so no error of the second
    squares = (times - 1) ** 2
    assert abs(squares.mean() - theirs.var()) < SIGMAS * squares.std() / math.sqrt(SAMPLES)
    assert SIGMAS * squares.std() / math.sqrt(SAMPLES) < 0.3 * theirs.var(), "too noisy to be a test"


@pytest.mark.parametrize(("name", "parameters", "theirs"), LAWS)
def test_laplace_transform_is_that_of_what_is_drawn(name, parameters, theirs):
    law = dc.service_law(name, **parameters)
    times = sample(law)
    for s in (0.1, 1.0, 10.0):
        decayed = np.exp(-s * times)
        assert abs(law.laplace(s) - decayed.mean()) < SIGMAS * decayed.std() / math.sqrt(SAMPLES)
    assert law.laplace(0.0) == pytest.approx(1, abs=1e-13)
    assert law.laplace(math.inf) == 0


@pytest.mark.parametrize("shape", [0.051, 0.3, 1, 2, 100])
@pytest.mark.parametrize("s", [1e-6, 0.1, 1.0, 100.0, 1e8])
def test_laplace_transform_by_quadrature_is_exact(shape, s):
    """Against E[exp(-sS)] by another substitution, a sum of a fine grid of quantiles; and a law in closed form."""
    if shape == 1:
        assert dc.service_law("weibull", shape=1).laplace(s) == pytest.approx(1 / (1 + s), rel=1e-12)
    log, step = np.linspace(-45, 5, 400_001, retstep=True)
    quantile = np.exp(log / shape - math.lgamma(1 + 1 / shape))
    grid = np.exp(log - np.exp(log) - s * quantile) * step  # the trapezoidal rule, exact to rounding on a line
    assert dc.service_law("weibull", shape=shape).laplace(s) == pytest.approx(grid.sum(), rel=1e-10, abs=1e-13)


def test_the_deterministic_law_is_one():
    assert dc.service_law("deterministic").laplace(2.0) == math.exp(-2)
    law = dc.service_law("deterministic")
    assert (sample(law, 100) == 1.0).all()
    assert law.scv == 0


def test_variance_is_infinite_up_to_shape_two():
    assert dc.service_law("pareto", shape=2).scv == math.inf
    assert dc.service_law("pareto", shape=2.1).scv == pytest.approx(1 / 0.21)


def test_labels_are_stable_and_exact():
    assert dc.service_law("erlang", stages=np.int64(3)).label == "erlang(stages=3)"
    assert dc.service_law("weibull", shape=np.float64(2)).label == dc.service_law("weibull", shape=2).label
    assert dc.service_law("pareto", shape=2.5).label != dc.service_law("pareto", shape=np.nextafter(2.5, 3)).label
    assert as_law("deterministic") == dc.service_law("deterministic")
    assert as_law(dc.service_law("erlang", stages=2)) == dc.service_law("erlang", stages=2)


@pytest.mark.parametrize(("name", "parameters", "theirs"), LAWS)
def test_a_law_is_known_by_its_label(name, parameters, theirs):
    law = dc.service_law(name, **parameters)
    assert as_law(law.label) == law


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("normal", {}, r"service = 'normal': must be one of exponential, deterministic, erlang, "),
        ("erlang", {}, r"service = 'erlang' with parameters \[\]: must be service_law\('erlang', stages=…\)"),
        ("exponential", {"rate": 2}, r"service = 'exponential' with parameters \['rate'\]: must be service_law\('exp"),
        ("erlang", {"stages": 0}, r"stages = 0: must be an integer in \[1, 1000\]"),
        ("erlang", {"stages": 2.5}, r"stages = 2\.5: must be an integer"),
        ("hyperexponential", {"scv": 1.0}, r"scv = 1\.0: must be a number greater than 1 and at most 1e\+06"),
        ("hyperexponential", {"scv": math.inf}, r"scv = inf: must be a number"),
        ("weibull", {"shape": -1}, r"shape = -1: must be a number greater than 0\.05 and at most 100"),
        ("weibull", {"shape": True}, r"shape = True: must be a number"),
        ("pareto", {"shape": 1.0}, r"shape = 1\.0: must be a number greater than 1 .*the mean is infinite up to 1"),
        ("pareto", {"shape": "3"}, r"shape = '3': must be a number greater than 1"),
        ("pareto", {"shape": math.nan}, r"shape = nan: must be a number greater than 1"),
    ],
)
def test_bad_laws_are_named(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        dc.service_law(name, **parameters)


@pytest.mark.parametrize("service", [1.0, None, {"name": "erlang"}, "erlang(4)", "erlang(stages=4", "weibull(shape=)"])
def test_what_is_no_law_is_named(service):
    with pytest.raises(ValueError, match=r"service = .*: must be the name of a law, its label or what service_law ret"):
        as_law(service)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("erlang(stages=four)", r"stages = 'four': must be an integer"),
        ("erlang(stages=2.5)", r"stages = 2\.5: must be an integer"),
        ("erlang(scv=2)", r"service = 'erlang' with parameters \['scv'\]: must be service_law\('erlang', stages=…\)"),
        ("pareto(shape=nan)", r"shape = nan: must be a number greater than 1"),
    ],
)
def test_bad_labels_are_named(label, message):
    with pytest.raises(ValueError, match=message):
        as_law(label)
