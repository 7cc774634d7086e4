"""The configuration: bad input is one line that names file, field, value and what is allowed."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dchoices import registry, service
from dchoices.studies import STUDIES
from dchoices.workflow import config, estimates

ROOT = Path(__file__).parents[2]
GOOD = yaml.safe_load("""
profile: small
seed: 1
studies:
  trajectories: {N: [100, 1000], d: &d [1, 2], lam: &lam [0.3, 0.5, 0.7, 0.9], t_end: 5, t_step: 0.5,
                 replicates: 3, split: [d], events: 1.0e+6}
  ladder: {starts: [overloaded-3, random-2], N: [100, 1000], replicates: [5, 3], d: [2], lam: [0.4], t_end: 5,
           t_step: 0.1, events: 1.0e+6}
  concentration: {N: [100], d: [2], lam: [0.4], t_end: 5, t_step: 0.5, epsilon: [0.1], perturbation: [0, 1],
                  replicates: 3, events: 1.0e+6}
  fluid: {d: *d, lam: *lam, t_end: 5, t_step: 0.5}
  portrait: {starts: [[1], [0.5, 0.5]], d: [2], lam: [0.4], t_end: 5, times: 10}
  fixed_points: {d: [1, 2, 3], lam_points: 50}
  bound_grid: {most_probes: 3, lam_points: 50}
  convergence: {starts: [empty], d: *d, lam: *lam, levels: [1, 2], closeness: [0.1], example_d: 2, example_lam: [0.4]}
  stationary: {policies: [sq-memory, sq], N: [100], d: *d, lam: [0.3, 0.9], warm_up: 2, horizon: 2, shortest: 20,
               replicates: 3, split: [d], events: 1.0e+7}
  policies: {policies: {random: 0, sq-half: 2, sq-memory: 2}, N: [100], lam: [0.3, 0.9], warm_up: 2, horizon: 2,
             shortest: 20, replicates: 3, events: 1.0e+6}
  heavy_traffic: {policies: {sq-memory: [2], sq: [2, 3]}, N: [100], lam: [0.9], warm_up: 3, horizon: 1, replicates: 3,
                  events: 1.0e+6}
  constant_d: {policies: {sq-memory: [2, 3], jsq: [0]}, N: [100, 1000], lam: [0.6], warm_up: [2, 1], horizon: [50, 5],
               shortest: 1, replicates: 3, events: 1.0e+6}
  recursion: {policies: [sq-memory, sq], starts: [overloaded-4], N: [100], d: [2], lam: [0.6], t_end: 5, t_step: 0.1,
              replicates: 3, events: 1.0e+6}
  service: {laws: {exponential: {}, erlang: {stages: 4}, pareto: {shape: 1.5}}, policies: [sq-memory], N: [100], d: [2],
            lam: [0.4], warm_up: 2, horizon: 2, shortest: 20, replicates: 3, events: 1.0e+6}
  finite_size: {regimes: {threshold: {d: [2], N: [10, 20], offsets: [-1, 0, 1], events: 1000},
                          above: {d: [1, 2], N: [10], events: 500}, step-2: {d: [1], N: [10], events: 500}},
                steps: [2], closeness: [1.0e-4, 0.001, 0.01], replicates: 4, events: 1.0e+6}
  fluctuations: {N: [100], d: [2], lam: [0.2], t_end: 50, warm_up: 5, replicates: 3, events: 1.0e+6}
  replacement: {policies: [sq], N: [10, 20], d: [2], lam: [0.7], t_end: 50, warm_up: 5, replicates: 3, events: 1.0e+6}
""")


def changed(path, value):
    """Return the good configuration with one field replaced."""
    content = copy.deepcopy(GOOD)
    *parents, last = path
    place = content
    for step in parents:
        place = place[step]
    place[last] = value
    return content


def error_of(content):
    with pytest.raises(config.ConfigError) as caught:
        config.make_plan(content, "some.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


T = ("studies", "trajectories")
L = ("studies", "ladder")
S = ("studies", "stationary")
P = ("studies", "policies")
C = ("studies", "concentration")
F = ("studies", "finite_size")
R = ("studies", "convergence")
V = ("studies", "service")
H = ("studies", "heavy_traffic")
D = ("studies", "constant_d")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        # out of range
        ((*T, "lam", 2), 1.2, "trajectories.lam[2] = 1.2: must be a number greater than 0 and less than 1"),
        ((*T, "lam", 0), 0, "trajectories.lam[0] = 0: must be a number greater than 0 and less than 1"),
        ((*T, "d"), [0], "trajectories.d[0] = 0: must be an integer from 1 to 10000"),
        ((*T, "N"), [0], "trajectories.N[0] = 0: must be an integer from 1 to 10^10"),
        ((*T, "t_end"), -1, "trajectories.t_end = -1: must be a number greater than 0"),
        ((*T, "replicates"), 1, "trajectories.replicates = 1: must be an integer of at least 2"),
        (("seed",), -1, "seed = -1: must be an integer from 0 to 2^63 - 1"),
        (("profile",), "My run", "profile = 'My run': must be a name of up to 50 lower-case"),
        (("profile",), "reference", "profile = 'reference': must be a name"),
        # lists
        ((*T, "lam"), [], "trajectories.lam = []: must be a list of at least one value, each a number"),
        ((*T, "lam"), 0.5, "trajectories.lam = 0.5: must be a list of at least one value"),
        ((*T, "N"), [100, 1000, 100], "trajectories.N = [100, 1000, 100]: must not hold 100 twice"),
        ((*T, "N"), [100, 100.0], "must not hold 100.0 twice"),
        # types
        ((*T, "replicates"), "5", "trajectories.replicates = '5': must be an integer of at least 2"),
        ((*T, "replicates"), True, "trajectories.replicates = True: must be an integer of at least 2"),
        ((*T, "lam", 1), True, "trajectories.lam[1] = True: must be a number greater than 0"),
        ((*T, "d"), [1.5], "trajectories.d[0] = 1.5: must be an integer from 1 to 10000"),
        ((*T, "d"), [None], "trajectories.d[0] = None: must be an integer from 1 to 10000"),
        ((*T, "t_end"), float("inf"), "trajectories.t_end = inf: must be a finite number"),
        ((*T, "lam", 3), float("nan"), "trajectories.lam[3] = nan: must be a finite number"),
        (("studies",), [1], "studies = [1]: must be a mapping"),
        # names
        ((*S, "policies"), ["sq-memry"], "'sq-memry': must be one of sq-memory, sq, did you mean sq-memory?"),
        ((*S, "split"), ["t"], "stationary.split[0] = 't': must be one of d, lam, N"),
        ((*S, "split"), ["d", "d"], "stationary.split = ['d', 'd']: must not hold 'd' twice"),
        ((*S, "split"), "d", "stationary.split = 'd': must be a list of axes out of d, lam, N"),
        (("studies",), {}, "studies = {}: must be a mapping of at least one study to its parameters"),
        (("studies", "stationery"), {}, "studies.stationery = {}: unknown key, did you mean stationary?"),
        ((*L, "starts"), ["over"], "starts[0] = 'over': must be empty, fixed-point, "),
        ((*L, "starts"), ["random-0"], "starts[0] = 'random-0': must be empty, fixed-point, overloaded-<m>, stale-<m> "
         "or random-<m> with a whole number m up to 12 (random-<m> from 1)"),
        ((*L, "replicates"), 3, "ladder.replicates = 3: must be a list of at least one value, each an integer of at"),
        ((*L, "replicates"), [3, 1], "ladder.replicates[1] = 1: must be an integer of at least 2"),
        ((*L, "split"), ["N"], "ladder.split[0] = 'N': must be one of d, lam"),
        (("studies", "recursion", "policies"), ["jsq"], "recursion.policies[0] = 'jsq': must be one of sq-memory, sq"),
        ((*F, "regimes", "threshold", "d"), [1], "threshold.d[0] = 1: must be an integer from 2 to 10000 (for"),
        ((*F, "regimes", "above", "offsets"), [1], "above.offsets = [1]: unknown key; must be one of d, N, events"),
        ((*F, "regimes"), {"step-4": {}}, "regimes.step-4 = {}: unknown key, did you mean step-"),
        ((*F, "regimes"), {}, "finite_size.regimes.threshold: is missing, must be a mapping of keys to values"),
        ((*F, "steps"), [1], "finite_size.steps[0] = 1: must be an integer from 2 to 6"),
        ((*F, "closeness"), [0.1], "finite_size.closeness = [0.1]: must be a list of at least three numbers"),
        ((*F, "replicates"), 3, "finite_size.replicates = 3: must be an integer of at least 4"),
        ((*F, "events"), 6000, "studies.finite_size.events = 6e+03: must be at least the estimated 7.5e+03"),
        (("studies", "recursion", "starts"), [], "recursion.starts = []: must be a list of at least one value, each"),
        ((*R, "starts"), ["fixed-point"], "starts[0] = 'fixed-point': must be empty, overloaded-<m> or stale-<m>"),
        ((*R, "levels"), [0], "convergence.levels[0] = 0: must be an integer from 1 to 20"),
        ((*R, "closeness"), [0.0], "convergence.closeness[0] = 0.0: must be a number from 1e-9 to 0.5"),
        ((*R, "example_d"), 0, "convergence.example_d = 0: must be an integer from 1 to 10000"),
        ((*T, "lamda"), [0.5], "trajectories.lamda = [0.5]: unknown key, did you mean lam?; must be one of"),
        (("sed",), 1, "sed = 1: unknown key, did you mean seed?; must be one of profile, seed, studies"),
        ((*P, "policies", "jsqq"), 0, "policies.jsqq = 0: unknown key, did you mean jsq?; must be one of jiq, jsq, "),
        ((*P, "policies", "mine"), 2, ", sq-half, or a policy that notebooks/policies.ipynb registers"),
        ((*P, "policies", "sq-half"), 0, "policies.sq-half = 0: must be an integer from 1 to 10000"),
        # a d for a policy without one, and none for a policy with one
        ((*P, "policies", "jsq"), 2, "policies.policies.jsq = 2: must be 0, as this policy has no d"),
        ((*P, "policies", "random"), False, "policies.policies.random = False: must be 0, as this policy has no d"),
        ((*P, "policies", "sq"), 0, "policies.policies.sq = 0: must be an integer from 1 to 10000"),
        ((*P, "policies", "sq"), [1, 2], "policies.policies.sq = [1, 2]: must be an integer from 1 to 10000"),
        ((*P, "policies"), {}, "policies.policies = {}: must be a mapping of at least one policy to its number of"),
        ((*P, "policies"), ["sq"], "policies.policies = ['sq']: must be a mapping of at least one policy"),
        ((*P, "split"), ["d"], "policies.split[0] = 'd': must be one of lam, N"),
        ((*P, "d"), [2], "policies.d = [2]: unknown key"),
        # several d of a policy, and one number for each N
        ((*H, "policies", "sq"), [1], "heavy_traffic.policies.sq[0] = 1: must be an integer from 2 to 10000 (with one"),
        ((*H, "policies", "sq-memory"), 2, "policies.sq-memory = 2: must be a list of at least one value, each an in"),
        ((*H, "policies", "jsq"), [0], "heavy_traffic.policies.jsq = [0]: unknown key, did you mean sq?; must be one"),
        ((*H, "replicates"), 2, "heavy_traffic.replicates = 2: must be an integer of at least 3 (an interval with a"),
        ((*H, "horizon"), 0, "heavy_traffic.horizon = 0: must be a number greater than 0 (in relaxation times)"),
        ((*H, "N"), [10**6], "heavy_traffic.events = 1e+06: must be at least the estimated 1.03e+09 events"),
        ((*D, "policies", "jsq"), [2], "constant_d.policies.jsq[0] = 2: must be 0, as this policy has no d"),
        ((*D, "policies", "jsq"), 0, "constant_d.policies.jsq = 0: must be [0], as this policy has no d"),
        ((*D, "warm_up"), [2], "constant_d.warm_up = [2]: must hold one number for each of N = [100, 1000]"),
        ((*D, "horizon"), [2, 0], "constant_d.horizon[1] = 0: must be a number greater than 0 (in units of 1/(1"),
        ((*D, "split"), ["N"], "constant_d.split[0] = 'N': must be one of lam"),
        # tails
        ((*C, "epsilon"), [0], "concentration.epsilon[0] = 0: must be a number greater than 0 and less than 1 (a dist"),
        ((*C, "epsilon"), 0.1, "concentration.epsilon = 0.1: must be a list of at least one value, each a number"),
        ((*C, "perturbation"), [-1], "concentration.perturbation[0] = -1: must be a number of at least 0"),
        ((*C, "t_step"), 0.3, "concentration.t_step = 0.3: must divide t_end = 5 into a whole number"),
        ((*C, "N"), [10**6], "concentration.events = 1e+06: must be at least the estimated 4.2e+07 events"),
        (("studies", "bound_grid", "most_probes"), 0, "bound_grid.most_probes = 0: must be an integer from 1 to 10000"),
        (("studies", "fluctuations", "warm_up"), -1, "fluctuations.warm_up = -1: must be a number of at least 0"),
        (("studies", "fluctuations", "warm_up"), 50, "fluctuations.warm_up = 50: must be less than t_end = 50"),
        (("studies", "replacement", "policies"), ["jsq"], "replacement.policies[0] = 'jsq': must be one of sq-"),
        (("studies", "replacement", "N"), [10**8], "N[0] = 100000000: must be an integer from 1 to 10^7"),
        (("studies", "replacement", "d"), [11], "replacement.d = [11]: different servers are probed, must be at most"),
        (("studies", "bound_grid", "lam_points"), 1, "bound_grid.lam_points = 1: must be an integer from 2 to 1000000"),
        (("studies", "portrait", "starts", 1), [], "portrait.starts[1] = []: must be a list of the shares of servers"),
        (("studies", "portrait", "starts", 1), [1, -1], "portrait.starts[1][1] = -1: must be a share of the servers"),
        (("studies", "portrait", "starts", 0), "empty", "portrait.starts[0] = 'empty': must be a list of the shares"),
        (("studies", "portrait", "starts", 1), [1.0], "portrait.starts = [[1], [1.0]]: must not hold [1.0] twice"),
        ((*V, "laws"), {}, "service.laws = {}: must be a mapping of at least one service law to its parameters"),
        ((*V, "laws"), ["erlang"], "service.laws = ['erlang']: must be a mapping of at least one service law"),
        ((*V, "laws", "normal"), {}, "service.laws.normal = {}: unknown key; must be one of exponential, "),
        ((*V, "laws", "erlang"), {}, "service.laws.erlang.stages: is missing, must be an integer from 1 to 1000"),
        ((*V, "laws", "erlang"), 4, "service.laws.erlang = 4: must be {stages: an integer from 1 to 1000}"),
        ((*V, "laws", "erlang", "stages"), 2.5, "laws.erlang.stages = 2.5: must be an integer from 1 to 1000"),
        ((*V, "laws", "erlang", "shape"), 2, "laws.erlang.shape = 2: unknown key; must be one of stages"),
        ((*V, "laws", "exponential"), {"rate": 1}, "exponential = {'rate': 1}: must be {}, as this law has no"),
        ((*V, "laws", "pareto", "shape"), 1, "pareto.shape = 1: must be a number greater than 1 and at most 1000 (the"),
        ((*V, "laws", "weibull"), {"shape": 0}, "weibull.shape = 0: must be a number greater than 0.05"),
        ((*V, "laws", "hyperexponential"), {"scv": 1}, "hyperexponential.scv = 1: must be a number greater than 1 and"),
        ((*V, "N"), [10**7], "service.N[0] = 10000000: must be an integer from 1 to 10^6 (run server by server)"),
        ((*V, "N"), [10**4], "service.events = 1e+06: must be at least the estimated"),
        # what the schema cannot say
        ((*P, "policies", "sq-distinct"), 200, "sq-distinct = 200: different servers are probed, must be at most"),
        ((*L, "replicates"), [3], "replicates = [3]: must hold one number for each of N = [100, 1000]"),
        ((*T, "t_step"), 0.3, "trajectories.t_step = 0.3: must divide t_end = 5 into a whole number"),
        ((*T, "t_step"), 50, "trajectories.t_step = 50: must divide t_end = 5"),
        (("studies", "portrait", "starts", 1), [0.5, 0.4], "starts[1] = [0.5, 0.4]: sums to 0.9, must sum to 1"),
        (("studies", "fluid", "lam"), [0.5], "fluid.lam = [0.5]: must be that of studies.trajectories"),
        ((*T, "N"), [10**9], "trajectories.events = 1e+06: must be at least the estimated 1.92e+11 events"),
    ],
)  # fmt: skip
def test_bad_values_are_named(path, value, message):
    error = error_of(changed(path, value))
    assert error.startswith(f"some.yaml: {path[0]}")
    assert message in error


@pytest.mark.parametrize(("text", "numbers"), [("1e5", "1.0e+5 or 100000"), ("2.5e-1", "2.5e-1 or 0.25")])
def test_number_that_yaml_reads_as_a_string_is_explained(text, numbers):
    assert f"(YAML reads {text} as a string: write {numbers})" in error_of(changed((*T, "t_end"), text))
    assert isinstance(yaml.safe_load(numbers.split(" or ")[0]), float)


def test_misspelt_key_is_reported_before_the_missing_one():
    content = copy.deepcopy(GOOD)
    content["studies"]["stationary"]["warmup"] = content["studies"]["stationary"].pop("warm_up")
    assert "studies.stationary.warmup = 2: unknown key, did you mean warm_up?" in error_of(content)


def test_missing_key_is_named_with_what_it_must_be():
    content = copy.deepcopy(GOOD)
    del content["studies"]["stationary"]["horizon"]
    assert "studies.stationary.horizon: is missing, must be a number greater than 0" in error_of(content)


def test_whole_floats_become_integers():
    plan = config.make_plan(changed((*T, "N"), [100, 1.0e3]))
    sizes = plan.jobs["trajectories/d=1"].parameters["N"]
    assert sizes == [100, 1000]
    assert all(type(size) is int for size in sizes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"line 3: a: is given twice"),
        ("a: {b: 1, b: 2}\n", r"line 1: b: is given twice"),
        ("a: [1\n", r"is no valid YAML"),
        ("a: !!python/object/apply:os.getcwd []\n", r"line 1: tag .*os.getcwd'?: must not be given"),
        ("a: !!int x\n", r"line 1: tag .*: must not be given"),
        ("? [1, 2]\n: 1\n", r"line 1: key a list or mapping: must be a name"),
        ("a:\n  1: 2\n", r"line 2: key '1': must be a name"),
        ("a: &b [*b]\n", r"line 1: \*b: must not stand inside what it is an alias of"),
        ("a: " + 21 * "[" + 21 * "]", r"more than 20 levels of lists and mappings"),
        ("a: &a [" + 99 * "1, " + "1]\nb: &b [" + 99 * "*a, " + "*a]\n", r"line 2: more than 10000 values"),
        ("a: 0x_\n", r"line 1: '0x_': must be a number"),
        ("a: " + "9" * 5000, r"line 1: '9+…: must be a number of at most 60 characters"),
        ("a: 1\n" * 40_001, r"more than 200000 bytes"),
        ("__use_yte__: true\na: ?1 + 1\n", r"__use_yte__: must not be given"),
        ("a: \0", r"is no valid YAML"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(config.ConfigError, match=f"^{re.escape(str(path))}: .*{message}") as caught:
        config.read(path)
    assert "\n" not in str(caught.value)


def test_anchors_and_merge_keys_are_read(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n")
    assert config.read(path)["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize("profile", ["paper", "smoke"])
def test_the_profiles_are_valid(profile):
    path = ROOT / "config" / f"{profile}.yaml"
    plan = config.make_plan(config.read(path), str(path))
    assert plan.profile == profile
    assert plan.studies == [
        "trajectories", "ladder", "concentration", "fluid", "portrait", "fixed_points", "bound_grid", "convergence",
        "stationary", "policies", "heavy_traffic", "constant_d", "recursion", "service", "finite_size", "fluctuations",
        "replacement",
    ]  # fmt: skip


def test_the_schema_knows_the_policies():
    """A policy of the registry that is missing here could not be asked for; sq-half is the notebook's own."""
    several = config._schema()["$defs"]["constant_d"]["properties"]["policies"]["properties"]
    assert all(kind["$ref"].endswith("/probes") == registry.get(name).takes_d for name, kind in several.items())
    defined = config._schema()["$defs"]["policies"]["properties"]["policies"]["properties"]
    takes_d = {name: registry.get(name).takes_d for name in registry.policies()} | {"sq-half": True}
    assert {name: kind["$ref"].endswith("one_d") for name, kind in defined.items()} == takes_d
    distinct = {name for name in registry.policies() if registry.get(name).distinct}
    assert distinct == set(config.DISTINCT)


def test_the_schema_knows_the_service_laws():
    """With the parameters and the ranges that `service_law` takes."""
    defined = config._schema()["$defs"]["service"]["properties"]["laws"]["properties"]
    assert {name: set(config._resolve(kind).get("properties", {})) for name, kind in defined.items()} == {
        name: set(checks) for name, (checks, _) in service._LAWS.items()
    }
    for name, kind in defined.items():
        for parameter, allowed in kind.get("properties", {}).items():
            lowest = allowed.get("minimum", allowed.get("exclusiveMinimum"))
            service.service_law(name, **{parameter: allowed["maximum"]})
            with pytest.raises(ValueError, match=f"{parameter} = "):
                service.service_law(name, **{parameter: lowest if "exclusiveMinimum" in allowed else lowest - 1})
            with pytest.raises(ValueError, match=f"{parameter} = "):
                service.service_law(name, **{parameter: 2 * allowed["maximum"]})


def test_split_makes_one_job_for_each_value():
    plan = config.make_plan(changed((*T, "split"), ["lam"]))
    assert plan.parts("trajectories") == ["lam=0.3", "lam=0.5", "lam=0.7", "lam=0.9"]
    assert plan.parts("fluid") == ["all"]
    job = plan.jobs["trajectories/lam=0.3"]
    assert job.parameters == {
        "N": [100, 1000], "d": [1, 2], "lam": [0.3], "t_end": 5, "t_step": 0.5, "replicates": 3, "seed": 1
    }  # fmt: skip
    assert yaml.safe_load(job.as_yaml()) == job.parameters


def test_split_along_several_axes_makes_a_job_for_each_combination():
    plan = config.make_plan(changed((*T, "split"), ["N", "d"]))
    assert plan.parts("trajectories") == ["N=100,d=1", "N=100,d=2", "N=1000,d=1", "N=1000,d=2"]
    assert plan.jobs["trajectories/N=1000,d=1"].parameters["N"] == [1000]
    assert plan.events("trajectories") == pytest.approx(config.make_plan(GOOD).events("trajectories"))


def test_a_split_into_more_jobs_than_anyone_wants_is_refused():
    many = changed((*T, "split"), ["N", "lam"])
    many["studies"]["trajectories"] |= {"N": list(range(1, 100)), "lam": [k / 100 for k in range(1, 100)]}
    assert "trajectories.split = ['N', 'lam']: makes 9801 jobs, must be at most 1000" in error_of(many)


@pytest.mark.parametrize("study", GOOD["studies"])
def test_a_configuration_may_name_some_of_the_studies(study):
    some = GOOD | {"studies": {study: GOOD["studies"][study]}}
    assert config.make_plan(some).studies == [study]


def test_the_schema_knows_the_studies():
    known = config._schema()["properties"]["studies"]["properties"]
    assert set(known) == set(STUDIES) <= {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_estimated_events():
    trajectories = {
        "N": [10, 20],
        "d": [1, 2, 3],
        "lam": [0.5, 0.7],
        "t_end": 4,
        "t_step": 1,
        "replicates": 2,
    }
    assert config.estimated_events(trajectories) == pytest.approx(30 * 3.2 * 4 * 3 * 2)
    ladder = {**trajectories, "starts": ["empty", "stale-2"], "replicates": [5, 2]}
    assert config.estimated_events(ladder) == pytest.approx((50 + 40) * 3.2 * 4 * 3 * 2)
    stationary = {"policies": ["sq"], "N": [10], "d": [2], "lam": [0.5, 0.9], "replicates": 2}
    stationary |= {"warm_up": 3, "horizon": 7, "shortest": 10}
    assert config.estimated_events(stationary) == pytest.approx(10 * 2 * (1.5 * (10 + 14) + 1.9 * (30 + 70)))
    regimes = GOOD["studies"]["finite_size"]
    assert config.estimated_events(regimes) == pytest.approx(2 * 3 * 1000 + 3 * 500)
    policies = {**stationary, "policies": {"random": 0, "sq": 2}}
    del policies["d"]
    assert config.estimated_events(policies) == pytest.approx(2 * config.estimated_events(stationary))
    several = {"policies": {"sq": [2, 3], "jsq": [0]}, "N": [10, 20], "lam": [0.5, 0.9], "replicates": 2}
    ladder = several | {"warm_up": [1, 2], "horizon": [3, 4], "shortest": 5}
    expected = 10 * (1.5 * (5 + 6) + 1.9 * (10 + 30)) + 20 * (1.5 * (5 + 8) + 1.9 * (20 + 40))
    assert config.estimated_events(ladder) == pytest.approx(2 * 3 * expected)
    relaxations = several | {"N": [1, 100], "lam": [0.81], "warm_up": 3, "horizon": 1}  # alone at 1/(1-√λ)² = 100
    assert config.estimated_events(relaxations) == pytest.approx(2 * 3 * 1.81 * 4 * (1 * 100 + 100 * 1.5 / 0.19))
    perturbed = trajectories | {"epsilon": [0.1, 0.2], "perturbation": [0, 1]}
    assert config.estimated_events(perturbed) == pytest.approx(2 * config.estimated_events(trajectories))
    laws = stationary | {"laws": {"exponential": {}, "deterministic": {}, "erlang": {"stages": 2}}}
    arrivals = 10 * 2 * (0.5 * (10 + 14) + 0.9 * (30 + 70))
    expected = config.estimated_events(stationary) + 2 * estimates.PER_SERVER * arrivals
    assert config.estimated_events(laws) == pytest.approx(expected)
    assert config.estimated_events({"d": [1], "lam_points": 9}) == 0


def test_command_prints_the_plan(tmp_path, capsys):
    path = tmp_path / "good.yaml"
    path.write_text(yaml.safe_dump(GOOD))
    assert config.main([str(path)]) == 0
    assert f"profile small: {len(config.make_plan(GOOD).jobs)} jobs" in capsys.readouterr().out


def test_command_refuses_with_one_line_and_exit_code_2(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(changed((*T, "lam", 2), 1.2)))
    assert config.main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    allowed = "a number greater than 0 and less than 1 (from 1e-9 to 1 - 1e-12)"
    assert err == f"{path}: studies.trajectories.lam[2] = 1.2: must be {allowed}\n"


def test_reading_the_plan_stays_light():
    """The Snakefile imports these modules at every call: no numba, no xarray, no URI grammar."""
    code = (
        "import sys; from dchoices.workflow import closure, config;"
        "config.make_plan(config.read('config/smoke.yaml'));"
        "print([name for name in ('numba', 'numpy', 'xarray', 'rfc3987_syntax') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
