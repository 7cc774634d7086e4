"""The per-server engine against formulas of M/G/1, exact chains, the lumped chain, and its own bookkeeping."""

import dchoices as dc
import numpy as np
import pytest
from dchoices import per_server, registry, simulation, starts
from scipy import special

# One chance in about 10^5 per comparison that a right simulation is refused.
SIGMAS = 4.4
REPLICATES = 24
ONES = {1.0: 1.0}  # speeds of 1, given: the system is run server by server


def run(policy, N, d, lam, warm_up=50.0, horizon=100.0, seed=5, **how):
    return dc.stationary(policy, N, d, lam, warm_up, horizon, REPLICATES, seed, **how).squeeze()


def error(ds, name, replicates=REPLICATES):
    """Return the standard error behind a 95 % half-width."""
    return ds[f"{name}_ci95"].values / special.stdtrit(replicates - 1, 0.975)


def agree(ds, name, expected, noise=0.03):
    """Check an estimate against its exact value, and that the check is worth something."""
    allowed = SIGMAS * error(ds, name)
    assert allowed < noise * expected, "too noisy to be a test"
    assert abs(float(ds[name]) - expected) < allowed, name


LAWS = [
    ("exponential", {}),
    ("deterministic", {}),
    ("erlang", {"stages": 3}),
    ("hyperexponential", {"scv": 3.0}),
    ("weibull", {"shape": 0.7}),
    ("pareto", {"shape": 3.0}),
]


@pytest.mark.parametrize(("name", "parameters"), LAWS)
def test_random_dispatch_is_m_g_1(name, parameters):
    """N independent queues: Pollaczek and Khinchine give the mean response time, 1 + λ(1 + scv)/(2(1-λ))."""
    lam = 0.5
    law = dc.service_law(name, **parameters)
    ds = run("random", 1000, 0, lam, warm_up=150.0, service=law, speeds=ONES)
    agree(ds, "mean_response_time", 1 + lam * (1 + law.scv) / 2 / (1 - lam))
    agree(ds, "dispatch_to_idle", 1 - lam)
    assert ds.warm_up_ok


def test_the_response_time_of_m_m_1_is_exponential():
    ds = run("random", 1000, 0, 0.6, speeds=ONES)
    exact = np.exp(-0.4 * ds.response_time.values)
    assert (abs(ds.response_time_tail - exact) <= SIGMAS * error(ds, "response_time_tail")).all()
    assert (SIGMAS * error(ds, "response_time_tail") < 0.01).all(), "too noisy to be a test"


def test_deterministic_service_takes_exactly_one():
    """The tail of M/D/1 falls from 1 to λ at 1: jobs that find a server idle, and none takes less."""
    ds = run("random", 300, 0, 0.6, service="deterministic", response_time=[0.0, 0.999999, 1.0, 1.5])
    assert ds.response_time_tail.values[:2].tolist() == [1.0, 1.0]
    assert ds.response_time_tail.values[2] == pytest.approx(1 - float(ds.dispatch_to_idle), abs=1e-12)
    # Of the jobs that wait, those still there at 1.5 found more than half a service time of work: by Crommelin,
    # P(work <= 1/2) = (1-λ) e^{λ/2}.
    exact = 1 - 0.4 * np.exp(0.3)
    assert abs(ds.response_time_tail.values[3] - exact) < SIGMAS * error(ds, "response_time_tail")[3] < 0.03 * exact


def test_speeds_under_random_dispatch_are_a_mixture_of_m_m_1():
    lam, speeds = 0.5, np.array([0.8, 1.0, 2.0])
    ds = run("random", 900, 0, lam, speeds=dict.fromkeys(speeds, 1 / 3))
    agree(ds, "mean_response_time", np.mean(1 / (speeds - lam)))
    agree(ds, "dispatch_to_idle", 1 - np.mean(lam / speeds))
    exact = np.exp(-np.outer(ds.response_time, speeds - lam)).mean(axis=1)
    assert (abs(ds.response_time_tail - exact) <= SIGMAS * error(ds, "response_time_tail")).all()


def system(policy, N, d, lam, service="exponential", speeds=None, start="empty", seed=1):
    chosen = registry.get(policy)
    law = dc.service_law(service) if isinstance(service, str) else service
    fractions = starts.fractions(start, chosen, lam, chosen.probes(N, d))
    speeds = per_server.server_speeds(speeds, N)
    seed = np.random.SeedSequence(seed)
    return per_server.PerServerSystem(chosen, N, d, lam, fractions, seed, law, speeds, simulation.RESPONSE_TIMES)


def jobs_agree(policy, N, d, lam, response, idle, **how):
    """Check averages over jobs of a few servers, each run in one go: windows would take longer than their events."""
    measured = []
    for seed in range(REPLICATES):
        ours = system(policy, N, d, lam, seed=seed, **how)
        ours.advance(100.0)
        ours.reset_counters()
        arrived = ours.advance(150_000.0 / N)
        measured.append((ours.response(simulation.RESPONSE_TIMES)[0], ours.sent_by_queue[0] / arrived))
    for samples, exact in zip(np.transpose(measured), (response, idle), strict=True):
        allowed = SIGMAS * samples.std(ddof=1) / np.sqrt(REPLICATES)
        assert abs(samples.mean() - exact) < allowed < 0.015 * exact


def two_servers(send, lam, speeds, buffer=40):
    """Solve two exponential servers: ``send(q1, q2)`` is the chance that a job goes to the first.

    Returns the mean response time and the share of jobs that find an idle server.
    """
    states = [(x, y) for x in range(buffer + 1) for y in range(buffer + 1)]
    rates = np.zeros((len(states), len(states)))
    index = {state: place for place, state in enumerate(states)}
    for (x, y), row in index.items():
        to_first = send(x, y)
        moves = [(x + 1, y, 2 * lam * to_first), (x, y + 1, 2 * lam * (1 - to_first))]
        moves += [(x - 1, y, speeds[0]), (x, y - 1, speeds[1])]
        for *target, rate in moves:
            if tuple(target) in index:
                rates[row, index[tuple(target)]] += rate
    rates -= np.diag(rates.sum(axis=1))
    rates[:, 0] = 1.0  # Σπ = 1 in the place of one equation
    weight = np.linalg.solve(rates.T, np.eye(len(states))[0])
    queues = np.array(states)
    idle = [send(x, y) * (x == 0) + (1 - send(x, y)) * (y == 0) for x, y in states]
    return float(queues.sum(axis=1) @ weight) / (2 * lam), float(np.array(idle) @ weight)


def shorter(x, y):
    return (x < y) + (x == y) / 2


SENDS = {
    "jsq": shorter,
    "sq-distinct": shorter,
    "sq-memory-distinct": shorter,  # two probes see both
    "jiq": lambda x, y: shorter(min(x, 1), min(y, 1)),
    "sq": lambda x, y: 1 / 4 + shorter(x, y) / 2,  # both probes at one server, or one at each
}


@pytest.mark.parametrize("policy", sorted(SENDS))
def test_two_servers_of_different_speeds_agree_with_their_chain(policy):
    """Ties count here: the slower of two idle servers gets its half of the jobs."""
    lam, speeds = 0.6, (0.7, 1.4)
    d = 2 if policy.startswith("sq") else 0
    jobs_agree(policy, 2, d, lam, *two_servers(SENDS[policy], lam, speeds), speeds=speeds)


@pytest.mark.parametrize(
    ("policy", "N", "d", "lam", "buffer"),
    [("sq-memory", 2, 1, 0.5, 20), ("sq-memory", 3, 2, 0.7, 11), ("sq", 2, 2, 0.7, 40), ("sq", 3, 2, 0.7, 30)],
)
def test_exponential_service_agrees_with_the_exact_chain(policy, N, d, lam, buffer):
    exact = dc.exact_stationary(N, d, lam, buffer, policy)
    assert exact.truncated_mass < 2e-4
    jobs_agree(policy, N, d, lam, float(exact.mean_response_time), float(exact.dispatch_to_idle))


@pytest.mark.parametrize("policy", dc.policies())
def test_exponential_service_agrees_with_the_lumped_chain(policy):
    """An Erlang law of one stage is exponential, and not run in the lumped chain."""
    d = 2 if registry.get(policy).takes_d else 0
    law = dc.service_law("erlang", stages=1)
    lumped, ours = (run(policy, 100, d, 0.7, horizon=200.0, **how) for how in ({}, {"service": law}))
    for name in ("mean_response_time", "mean_queue_length", "dispatch_to_idle", "dispatch_to_observation_zero"):
        allowed = SIGMAS * np.hypot(error(lumped, name), error(ours, name))
        assert allowed < 0.08 * float(lumped[name]), "too noisy to be a test"
        assert abs(float(lumped[name]) - float(ours[name])) < allowed, name
    for level in range(3):
        allowed = SIGMAS * np.hypot(error(lumped, "occupancy")[level], error(ours, "occupancy")[level])
        assert abs(float(lumped.occupancy[level]) - float(ours.occupancy[level])) < allowed, f"p_{level}"
    early = slice(0, 6)  # further out, jobs are too few for an error
    tails = [ds.response_time_tail.sel(response_time=early) for ds in (lumped, ours)]
    errors = [error(ds.sel(response_time=early), "response_time_tail") for ds in (lumped, ours)]
    assert (abs(tails[0] - tails[1]) <= SIGMAS * np.hypot(*errors)).all()
    assert float(lumped.messages_per_job) == pytest.approx(float(ours.messages_per_job), rel=0.02)


@pytest.mark.parametrize("policy", dc.policies())
def test_busy_servers_and_littles_law(policy):
    """Whatever the policy and the law, λN servers are busy; jobs present are arrivals times response time."""
    d = 3 if registry.get(policy).takes_d else 0
    ds = run(policy, 200, d, 0.6, warm_up=100.0, service=dc.service_law("hyperexponential", scv=2.0))
    agree(ds, "mean_response_time", float(ds.mean_queue_length) / 0.6, noise=0.1)
    assert abs(float(ds.occupancy[0]) - 0.4) < SIGMAS * error(ds, "occupancy")[0] < 0.015
    assert ds.warm_up_ok


def shortest_of_all(at_least, d, rng):
    level = 0
    while at_least[level + 1] == at_least[0]:
        level += 1
    return level


def longest_of_all(at_least, d, rng):
    level = 0
    while at_least[level + 1] > 0:
        level += 1
    return level


@pytest.fixture
def mine():
    """Register policies of a user for one test."""
    names = []

    def register(choose):
        names.append(f"mine-{len(names)}")
        dc.register_policy(names[-1], choose, messages_per_job=0.0, takes_d=False)
        return names[-1]

    yield register
    for name in names:
        del registry._REGISTRY[name]


def test_a_users_policy_runs_in_both_engines(mine):
    name = mine(shortest_of_all)
    lumped, ours, built_in = (
        run(policy, 100, 0, 0.9, **how) for policy, how in ((name, {}), (name, {"speeds": ONES}), ("jsq", {}))
    )
    for ds in (ours, lumped):
        for one in ("mean_response_time", "dispatch_to_idle"):
            allowed = SIGMAS * np.hypot(error(ds, one), error(built_in, one))
            assert abs(float(ds[one]) - float(built_in[one])) < allowed < 0.05 * float(built_in[one]), one
    jobs_agree(name, 2, 0, 0.6, *two_servers(shorter, 0.6, (0.7, 1.4)), speeds=(0.7, 1.4))


@pytest.mark.parametrize("length", [-3, 4, 1000])
def test_a_users_policy_that_names_no_server_is_an_error(mine, length):
    name = mine(lambda at_least, d, rng: length)
    for how in ({}, {"service": "deterministic"}):
        with pytest.raises(ValueError, match=rf"policy '{name}' sent a job to queue length -?\d+: must be the queue"):
            dc.stationary(name, 50, 0, 0.5, replicates=2, **how)


def entries(first, following):
    """Return the entries of a list of the calendar."""
    found = []
    while first >= 0:
        found.append(int(first))
        first = following[first]
    return found


def check_books(ours):
    """Check that queues, order and calendar tell of the same jobs."""
    servers, departures = ours._servers, ours._departures
    used = [entry for first in departures.day for entry in entries(first, departures.following)]
    unused = entries(departures.unused[0], departures.following)
    assert sorted(used + unused) == list(range(departures.time.size))
    assert (np.bincount(departures.source[used], minlength=ours.N) == servers.queue).all()
    assert (departures.time[used] > ours._now).all()
    assert ours.by_queue.sum() == ours.N
    assert (servers.order[servers.place] == np.arange(ours.N)).all()
    assert sorted(servers.deck) == list(range(ours.N))
    if ours.policy.memory:
        assert (servers.seen >= servers.queue).all()
    elif ours.policy.code in (registry.codes.JOIN_SHORTEST, registry.codes.JOIN_IDLE, registry.codes.USER):
        assert (servers.seen == servers.queue).all()
    else:
        return
    assert (np.diff(servers.seen[servers.order]) <= 0).all()
    assert [(servers.seen >= level).sum() for level in range(servers.at_least.size)] == servers.at_least.tolist()


@pytest.mark.parametrize("policy", [*dc.policies(), longest_of_all])
def test_the_books_balance_while_arrays_grow(policy, mine):
    """From empty under high load, with speeds, so that heap and levels grow; jobs come and go as they are counted."""
    policy = mine(policy) if callable(policy) else policy
    d = 1 if registry.get(policy).takes_d else 0
    law = dc.service_law("pareto", shape=1.3)
    ours = system(policy, 40, d, 0.95, law, speeds=np.linspace(0.2, 1.8, 40))
    levels, room = ours._servers.at_least.size, ours._departures.time.size
    for _ in range(20):
        ours.reset_counters()
        before = int(ours._servers.queue.sum())
        arrived = ours.advance(2.0)
        check_books(ours)
        assert ours.sent_by_queue.sum() == ours.sent_by_observation.sum() == arrived
        assert int(ours._servers.queue.sum()) <= before + arrived
        assert arrived in range(20, 140)
    if policy in ("random", "mine-0"):
        assert ours._servers.at_least.size > levels
        assert ours._departures.time.size > room


def test_jobs_at_the_start_are_served_too():
    """Every server with two jobs of length 1, hardly an arrival: all leave one at 1 and one at 2."""
    ours = system("jsq", 1000, 0, 1e-9, "deterministic", start=dc.overloaded(2))
    ours.advance(0.9)
    assert ours.by_queue[:3].tolist() == [0, 0, 1000]
    ours.advance(0.9)
    assert ours.by_queue[:3].tolist() == [0, 1000, 0]
    ours.advance(0.9)
    assert ours.by_queue[:3].tolist() == [1000, 0, 0]
    check_books(ours)


def test_the_memory_starts_and_is_refreshed_as_told():
    """Idle servers, all remembered with two jobs but the few that were probed."""
    ours = system("sq-memory", 1000, 1, 0.5, start=dc.stale(2))
    arrived = ours.advance(0.2)
    assert ours.sent_by_observation[:2].sum() == arrived  # to the server that was just probed: idle, or with one job
    assert ours.sent_by_observation[0] > 0.9 * arrived
    assert (ours._servers.seen == 2).sum() > 800
    check_books(ours)


def test_runs_do_not_depend_on_neighbours():
    how = {"service": "deterministic", "speeds": {0.9: 0.5, 1.3: 0.5}, "warm_up": 2.0, "horizon": 20.0, "seed": 3}
    alone = dc.stationary("sq", 50, 2, 0.7, replicates=2, **how).squeeze()
    among = dc.stationary(["sq-memory", "sq"], [20, 50], [1, 2], [0.5, 0.7], replicates=2, **how)
    same = among.sel(policy="sq", N=50, d=2, λ=0.7)
    for name in ("mean_response_time", "mean_queue_length", "dispatch_to_idle"):
        assert float(same[name]) == float(alone[name])
    assert among.attrs["service"] == "deterministic"
    assert among.attrs["speeds"] == "10 at 0.9, 10 at 1.3; 25 at 0.9, 25 at 1.3"


def test_the_streams_of_the_lumped_chain_are_what_they_were():
    lumped = simulation.stream(1, "sq-memory", 100, 2, 0.9, "empty", 0)
    assert lumped.entropy == 200760466839208072038624848665358760109
    labelled = [simulation.stream(1, "sq-memory", 100, 2, 0.9, "empty", 0, *labels) for labels in (("a",), ("a", "b"))]
    assert len({lumped.entropy, *(stream.entropy for stream in labelled)}) == 3
    plain = dc.stationary("sq", 100, 2, 0.5, warm_up=1.0, horizon=10.0, replicates=2)
    assert plain.attrs["service"] == "exponential"
    assert plain.attrs["speeds"] == "all at 1.0"


def test_speeds():
    assert per_server.server_speeds(None, 3).tolist() == [1, 1, 1]
    assert per_server.server_speeds([2, 1, 3], 3).tolist() == [1, 2, 3]
    assert per_server.server_speeds({2.0: 0.3, 0.5: 0.7}, 10).tolist() == [0.5] * 7 + [2.0] * 3
    many = np.linspace(1, 2, 100)
    assert per_server.speeds_label(many) != per_server.speeds_label(np.nextafter(many, 3))


def test_the_load_that_servers_keep_up_with():
    """Some probe sets hit slow servers alone: brute force over all of them."""
    speeds = np.array([0.3, 0.5, 1.5, 2.0])
    mean = speeds.mean()
    for policy in ("jsq", "jiq", "sq-memory"):
        assert per_server.highest_load(registry.get(policy), 4, 1, speeds) == mean
    assert per_server.highest_load(registry.get("random"), 4, 0, speeds) == pytest.approx(0.3)
    # d = 2: the slowest k get λ·4·(k/4)² jobs, or λ·4·k(k-1)/12 without replacement.
    assert per_server.highest_load(registry.get("sq"), 4, 2, speeds) == pytest.approx(
        min(0.3 * 4, 0.8, 2.3 * 4 / 9, mean)
    )
    assert per_server.highest_load(registry.get("sq-distinct"), 4, 2, speeds) == pytest.approx(min(0.8 * 3 / 2, mean))
    assert per_server.highest_load(registry.get("sq-distinct"), 4, 4, speeds) == pytest.approx(mean)


GOOD = {"policy": "sq", "N": 4, "d": 2, "lam": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"service": "normal"}, "service = 'normal': must be one of exponential, deterministic"),
        ({"service": "pareto"}, r"service = 'pareto' with parameters \[\]: must be service_law\('pareto', shape=…\)"),
        ({"service": 2}, "service = 2: must be the name of a law"),
        ({"speeds": [1, 1, 1]}, r"speeds with shape \(3,\): must be N = 4 numbers > 0"),
        ({"speeds": 1.0}, r"speeds with shape \(\): must be N = 4 numbers > 0"),
        ({"speeds": [1, 1, 1, 0]}, r"speeds hold 0\.0: must be finite and > 0"),
        ({"speeds": [1, 1, 1, -2]}, r"speeds hold -2\.0: must be finite and > 0"),
        ({"speeds": [1, 1, 1, np.inf]}, r"speeds hold inf: must be finite and > 0"),
        ({"speeds": [1, 1, 1, np.nan]}, r"speeds hold nan: must be finite and > 0"),
        ({"speeds": "fast"}, r"speeds = 'fast': must be N numbers > 0"),
        ({"speeds": {0.0: 0.5, 2.0: 0.5}}, r"speeds = 0\.0: must be a finite number > 0"),
        ({"speeds": {1.0: 0.5, 2.0: 0.6}}, r"speeds: fractions of servers sum to 1\.1, must sum to 1"),
        ({"speeds": {1.0: 1.5, 2.0: -0.5}}, r"speeds = -0\.5: must be a finite number >= 0"),
        ({"speeds": {}}, r"speeds: fractions of servers sum to 0, must sum to 1"),
        ({"speeds": [0.4] * 4}, r"lam = 0\.5: must be less than 0\.4, what servers of these speeds can do under"),
        (
            {"policy": "random", "d": 0, "speeds": {0.5: 0.5, 2.0: 0.5}},
            r"lam = 0\.5: must be less than 0\.5, .* under policy 'random' at N = 4, d = 0",
        ),
        ({"service": "deterministic", "N": [4, 10**6 + 1]}, r"N = 1000001: must be at most 1000000 where the service"),
        ({"speeds": ONES, "N": 10**7}, r"N = 10000000: must be at most 1000000"),
    ],
)
def test_bad_input_is_named_before_any_work(change, message, monkeypatch):
    monkeypatch.setattr(simulation, "_engine", lambda *a: pytest.fail("work was begun"))
    with pytest.raises(ValueError, match=message):
        dc.stationary(**{**GOOD, **change}, replicates=2, warm_up=0.0)


def test_another_grid_of_response_times_is_refused():
    ours = system("sq", 10, 2, 0.5)
    ours.advance(10.0)
    assert ours.response(simulation.RESPONSE_TIMES)[1][0] == 1.0
    with pytest.raises(ValueError, match="response_time: must be the grid that the system was made with"):
        ours.response(np.array([1.0]))
