"""Bad arguments: whatever a public function is given, it returns, or says in one line what must be given."""

import inspect
import itertools
import math
import re
import warnings

import dchoices as dc
import numpy as np
import pytest
from dchoices import registry, validation
from dchoices.theory import exact_chain
from trust_limits import no_hang

pytestmark = pytest.mark.trust

# --- what goes wrong ----------------------------------------------------------------------------------------------


class Unprintable:
    """Its text is several lines."""

    def __repr__(self):
        return "a\nb"


def function(*_):
    """Neither a policy nor a time."""
    return None


TYPES = [
    None, True, False, np.bool_(True), "x", "", "a\nb", "\x1b[31m", "0.5", "empty", "sq", b"x", 1j, Unprintable(),
    function,
    {}, {"a": 1}, {1: 2}, {"sq": 2}, {None: None}, set(), frozenset({1}), slice(1), int, Ellipsis, NotImplemented,
    np.datetime64("2020-01-01"), np.str_("x"), (), object,
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 2, 3, 5, -0.0, 0.5, 1.5, 0.9, -0.5, 1.0, 2.0, 5e-324, 1e-300, 1e-10, 1e-9, 1 - 2.0**-53, 1 - 1e-12,
    1 - 1e-9,
    math.nan, math.inf, -math.inf, 1e5, 1e6, 1e300, -1e300, 10**4, 10**4 + 1, 10**6, 10**9, 10**10, 10**12,
    2**63 - 1, 2**63,
    2**64, -(2**63), 10**30, 10**400, 10**5000, np.int64(2), np.int8(-128), np.uint64(2**64 - 1), np.float32(0.5),
    np.float64(0.5), np.float16(0.5), np.longdouble(0.5), np.float64("nan"), np.array(2), np.array(0.5),
]  # fmt: skip
LISTS = [
    [], [[]], [[[]]], [None], [True], ["x"], [math.nan], [math.inf], [0.5, 0.5], [1, 1], [2, 2.0], [0.5, [0.5]],
    [[0.5], 1],
    [[1, 2], [3]], [0.5, "a"], [-1, 1], [1, 0], [0.5, 0.7], [0.1, 1], [2, 3], (0.5,), [1e-320, 1e-319], [10**400],
    [[[1]]],
    [[1]], [[0.5, 0.5], [0, 0]], [[0, 0], [1, 0]], [[math.nan]], [[2, -1]], [["a"]], [[1, 1]], [object()], [1j],
    [10**30],
    [0, 1e5], [0, 1e-300, 1e300], [5e-324], [0.0, 5e-324], ["empty", "empty"], ["sq", "sq"], ["sq", "jsq"],
    np.array([]), np.array([0.5]), np.array([2]), np.array(["a"]), np.array([None]), np.array([True]), np.array([1j]),
    np.zeros((0, 3)), np.zeros((2, 2, 2)), np.array([[1.0]]), np.array([math.nan, 1]), np.ma.masked_array([1.0],
    [True]),
    np.array(["2020-01-01"], dtype="datetime64[D]"), np.full(3, 0.5), np.array([1, 2], dtype=object), np.array([0.5],
    ">f4"),
    # of a size that must be refused before it is touched: none of these takes memory
    range(2), range(1, 10**9), range(10**20), np.broadcast_to(0.0, (10**5, 10**5)), np.broadcast_to(0.5, 10**9),
    [0.5] * (10**6 + 1), list(range(1, 10**4)), [k / 10**5 for k in range(1, 10**5)], itertools.count(1).__iter__,
]  # fmt: skip
BAD = [*TYPES, *NUMBERS, *LISTS]

# --- what goes right ----------------------------------------------------------------------------------------------


def fluid_path():
    return dc.fluid_path(0.5, 2, [0.0, 1.0])


def simulated():
    return dc.simulate("sq-memory", 10, 2, 0.5, [0.0, 1.0], replicates=2)


def fluid_paths():
    return dc.fluid_paths([0.5], [2], [0.0, 1.0])


def at_queue_zero(at_least, d, rng):
    """The longest queue there is."""
    queue = 0
    while at_least[queue + 1] > 0:
        queue += 1
    return queue


REGIMES = {"threshold": {"d": [2], "N": [10], "offsets": [0.0], "events": 1e4}}
FAST = {"lam": 0.5, "d": 2}
RUN = {"N": 10, "d": 2, "lam": 0.5, "seed": 0, "replicates": 4}
# For every public function arguments that are right, all of them, and soon done with.
CALLS = {
    "bound_grid": FAST,
    "compare": {"policies": {"sq": 2}, "N": 10, "lam": 0.5, "warm_up": 1.0, "horizon": 50.0,
                "options": {"replicates": 2, "seed": 0, "response_time": [1.0]}},
    "distance_to_fixed_point": {"path": fluid_path},
    "distance_to_switch": FAST,
    "exact_stationary": {"N": 2, "d": 1, "lam": 0.4, "buffer": 8, "policy": "sq-memory", "tolerance": 0.5},
    "explore": {"policy": "sq", "N": 10, "d": 2, "lam": 0.5, "start": "empty", "t_end": 1.0, "seed": 0},
    "fewest_probes": {"lam": 0.5},
    "finite_size": {"regimes": REGIMES, "replicates": 4, "seed": 0},
    "fixed_point": FAST,
    "fixed_point_grid": FAST,
    "fluctuations": {**RUN, "t_end": 2.0, "warm_up": 1.0},
    "fluctuations_below_threshold": {"lam": 0.3, "d": 2, "found_variance": 0.5},
    "fluid_dispatch": {**FAST, "t": [1.0], "start": "empty"},
    "fluid_path": {**FAST, "t": [1.0], "start": "empty", "policy": "sq-memory", "tolerance": 1e-8},
    "fluid_paths": {**FAST, "t": [1.0], "start": "empty", "policy": "sq-memory"},
    "loads_around_switch": {"level": 2, "d": 2},
    "mixed": {"shares": [0.5, 0.5], "observation": 1},
    "optimality_threshold": {"d": 2},
    "overloaded": {"m": 1},
    "phase_portrait": {**FAST, "t": [1.0], "starts": {"a": "empty"}},
    "policies": {},
    "queue_bound": {**FAST, "service": "exponential", "ulps": 2},
    "random_start": {"m": 1},
    "register_policy": {"name": "fuzzed", "choose": at_queue_zero, "messages_per_job": 1.0, "description": "a",
                        "takes_d": True},
    "relaxation_rates": {**FAST, "start": "empty"},
    "relaxation_time": {**FAST, "N": 10, "policy": "sq-memory"},
    "replacement_gap": {**RUN, "policy": "sq", "t_end": 2.0, "warm_up": 1.0},
    "replacement_limit": {**FAST, "policy": "sq"},
    "service_fixed_point": {**FAST, "service": "deterministic"},
    "service_law": {"name": "erlang", "parameters": {"stages": 2}},
    "simulate": {**RUN, "policy": "sq", "t": [1.0], "start": "empty"},
    "spectral_gap": {**FAST, "policy": "sq-memory"},
    "stale": {"m": 1},
    "stationary": {**RUN, "policy": "sq", "warm_up": 1.0, "horizon": 50.0, "response_time": [1.0],
                   "service": "exponential", "speeds": None},
    "step_response": {"levels": [2], "d": [2], "closeness": [0.1]},
    "sup_distance": {"simulated": simulated, "fluid": fluid_paths},
    "switch_load": {"level": 2, "d": 2},
    "tail_frequencies": {**RUN, "t": [1.0], "epsilon": 0.1, "perturbation": 0.0},
    "to_table": {"dataset": simulated, "path": "fuzzed.csv", "variables": "occupancy"},
    "total_variation": {"first": [0.5, 0.5], "second": [1.0]},
}  # fmt: skip
# Called by compiled code alone, which knows the type of what it is given.
COMPILED = {"uniform"}
# An argument that is part of another, as its errors name it.
ALSO = {
    "path": ["path"], "shares": ["shares", "observation"], "t": ["t", "times"], "regimes": ["regime", "d", "N",
    "events"],
    "options": ["replicates", "seed", "response_time", "service", "speeds"], "policies": ["policy", "policies", "d"],
    "N": ["N", "d", "events", "buffer", "t", "horizon", "warm_up"], "parameters": ["service", "stages"],
    "lam": ["lam", "buffer", "horizon", "t", "t_end"], "d": ["d", "lam", "level", "policy", "t", "events", "t_end",
    "horizon", "buffer"], "starts": ["start"],
    "replicates": ["replicates", "events", "t", "t_end", "horizon", "warm_up"], "name": ["name", "service"],
    "horizon": ["horizon", "warm_up", "replicates"], "warm_up": ["warm_up", "t_end", "horizon"], "policy": ["policy",
    "d"],
    "t_end": ["t_end", "warm_up", "replicates"], "perturbation": ["perturbation", "t"], "service": ["service",
    "stages"],
    "level": ["level"], "levels": ["level", "levels"], "closeness": ["closeness"], "simulated": ["simulated"],
    "tolerance": ["tolerance", "buffer"], "start": ["start", "lam", "t", "replicates"],
}  # fmt: skip


def built(value):
    """Return a valid argument: datasets are made when they are needed."""
    return value() if value in (fluid_path, simulated, fluid_paths) else value


def call(function, arguments):
    """Call with arguments by name; `options` and `parameters` are those that stand for more."""
    named = {name: built(value) if callable(value) else value for name, value in arguments.items()}
    more = named.pop("options", {}) | named.pop("parameters", {}) if function.__kwdefaults__ is None else {}
    return function(**named, **more)


@pytest.fixture(autouse=True)
def low_limits(monkeypatch, tmp_path):
    """What would be long is refused, so that every call that is not is fast: estimates come before the work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(validation, "MAX_EVENTS", 10**6)
    monkeypatch.setattr(validation, "MAX_NUMBERS", 10**6)
    monkeypatch.setattr(validation, "MAX_POINTS", 1000)
    monkeypatch.setattr(exact_chain, "MAX_STATES", 10**4)
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def bad_values(name, argument):
    """Return what an argument is tried with: of functions that are called, no other than one of ours."""
    called = name == "compare" and argument in ("warm_up", "horizon")
    return [value for value in BAD if not (called and callable(value) and value is not function)]


def shown(value):
    if isinstance(value, np.ndarray):
        return f"array of {value.size}"
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else ascii(value)[:60]


def refusal(name, argument, value, arguments):
    """Call a function with one argument changed; return its refusal, or None if it returns. All else is an error."""
    where = (
        f"{name}({argument}={shown(value) if not isinstance(value, int) or abs(value) < 1e30 else 'a huge integer'})"
    )
    with no_hang(where), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call(getattr(dc, name), arguments | {argument: value})
        except ValueError as error:
            text = str(error)
            known = [argument, *ALSO.get(argument, [])]
            assert text.isprintable(), f"{where}: {text!r}"
            assert len(text) < 600, f"{where}: {text}"
            assert "must" in text, f"{where}: {text}"
            assert set(known) & set(re.findall(r"\w+", text.split(":")[0])), f"{where}: {text}"
            return text
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
    return None


def test_every_public_function_is_tried_with_all_its_arguments():
    assert set(CALLS) | COMPILED == set(dc._EXPORTS)
    for name, arguments in CALLS.items():
        assert set(inspect.signature(getattr(dc, name)).parameters) == set(arguments), name


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_argument_is_named_with_what_it_must_be(name):
    call(getattr(dc, name), CALLS[name])
    tried = refused = 0
    wrong = []
    for argument in CALLS[name]:
        if argument in ("options", "parameters"):
            continue
        for value in bad_values(name, argument):
            tried += 1
            try:
                refused += refusal(name, argument, value, CALLS[name]) is not None
            except AssertionError as failure:
                wrong.append(str(failure))
    print(f"{name}: {tried} tried, {refused} refused")
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong)
    assert not CALLS[name] or refused > tried / 2


# --- policies of the user -----------------------------------------------------------------------------------------


def not_for_numba(at_least, d, rng):
    """Asks for what numba does not know."""
    return open("x")


def text_for_a_queue(at_least, d, rng):
    """Returns text."""
    return "0"


def fraction_for_a_queue(at_least, d, rng):
    """Returns a float."""
    return 0.5


def below_zero(at_least, d, rng):
    """Returns what is no queue length."""
    return -1


def beyond_all(at_least, d, rng):
    """Returns a queue length that no server has."""
    return 7


@pytest.mark.parametrize("name", ["", "Sq", "a b", "../x", "a/b", "a_b", "-a", "a-", "a\n", "sq", "jiq", None, 1, b"a"])
def test_a_policy_has_a_plain_name_of_its_own(name):
    with pytest.raises(ValueError, match=r"^name = .*must be"):
        dc.register_policy(name, at_queue_zero, 1)
    assert name not in dc.policies() or name in ("sq", "jiq")


@pytest.mark.parametrize("choose", [not_for_numba, text_for_a_queue, fraction_for_a_queue, lambda at_least: 0, 1, None])
def test_a_policy_that_cannot_be_compiled_is_refused_when_it_is_registered(choose):
    with pytest.raises(ValueError, match=r"^choose = .*must ") as caught:
        dc.register_policy("fuzzed", choose, 1)
    assert str(caught.value).isprintable()
    assert "fuzzed" not in dc.policies()


@pytest.mark.parametrize("choose", [below_zero, beyond_all])
@pytest.mark.parametrize("service", ["exponential", "deterministic"])
def test_a_policy_that_sends_a_job_nowhere_is_stopped(choose, service):
    dc.register_policy("fuzzed", choose, 1)
    with pytest.raises(
        ValueError, match=r"policy 'fuzzed' sent a job to queue length (-1|7): must be the queue length of"
    ):
        dc.stationary("fuzzed", N=10, d=2, lam=0.5, warm_up=0, horizon=50.0, replicates=2, service=service)


@pytest.mark.parametrize("messages", [math.nan, math.inf, -1, None, "1", [1], True, lambda N, d, idle: math.nan])
def test_messages_are_a_number(messages):
    def run():
        dc.register_policy("fuzzed", at_queue_zero, messages)
        dc.stationary("fuzzed", N=10, d=2, lam=0.5, warm_up=0, horizon=50.0, replicates=2)

    with pytest.raises(ValueError, match=r"^messages_per_job = .*: must be a finite number >= 0"):
        run()
