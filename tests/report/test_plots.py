import base64
import gzip
import json
import xml.etree.ElementTree as ElementTree

import holoviews as hv
import numpy as np
import pytest
from dchoices import plots
from dchoices.plots import limits, relaxation
from dchoices.plots.critical import finite_size
from dchoices.plots.heavy_traffic import heavy_traffic
from dchoices.plots.messages import messages
from dchoices.plots.portrait import portrait
from dchoices.theory.closed_forms import queue_bound
from dchoices.theory.critical import lowest_share_limit
from made_up_study import constant_d, study
from made_up_study import portrait as made_up_portrait

ANCHORS = [
    "fig-portrait", "fig-trajectories", "fig-error", "fig-starts", "fig-concentration", "fig-idle", "fig-recursion",
    "fig-fixed-points", "fig-bound", "fig-convergence", "fig-memory", "fig-lookup", "fig-heavy-traffic",
    "fig-messages", "fig-policies", "fig-critical", "fig-finite-size", "fig-service", "fig-fluctuations",
    "fig-replacement",
]  # fmt: skip

SHAPES = {
    "one probe": {"d": (1,)},
    "one load": {"loads": (0.9,)},
    "loads below the threshold only": {"d": (5,), "loads": (0.3, 0.5)},
    "with memory only": {"policies": ("sq-memory",)},
    "one size": {"sizes": (100,)},
    "one replicate": {"replicates": 1},
    "no d of 2": {"d": (3, 7)},
    "too few numbers of servers for a tail": {"tail_sizes": (200, 300)},
    "no control of the tail": {"perturbation": (0,)},
    "one policy": {"side_by_side": ("jsq",)},
    "few regimes": {"regimes": {"threshold": ([2], [100]), "step-2": ([1], [100, 1000])}},
    "a policy of one's own": {"side_by_side": ("my-policy",)},
    "one service law": {"laws": ("pareto(shape=1.5)",)},
}


@pytest.fixture(scope="module")
def figures(datasets):
    """The figures of the made-up study, by their anchors."""
    return {figure.anchor: figure for figure in plots.make_figures(datasets)}


@pytest.fixture(scope="module")
def facts(figures):
    return {anchor: figure.facts for anchor, figure in figures.items()}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_figures_are_made_of_what_a_profile_has(shape):
    made_up = study(n_loads=20, **shape)
    figures = plots.make_figures(made_up)
    assert [figure.anchor for figure in figures] == ANCHORS
    assert all(figure.panels and figure.alt and figure.key for figure in figures)
    plots.story(made_up)


def test_examples_lie_on_either_side_of_the_threshold(facts):
    assert facts["fig-trajectories"]["d"] == 2
    below, above = facts["fig-trajectories"]["loads"]
    assert below < 0.5 < above
    assert facts["fig-bound"]["differ"] == 0
    assert facts["fig-memory"]["response"][1][1] == pytest.approx(20)  # M/M/1 at λ = 0.95


def test_a_level_that_is_not_the_bound_is_counted(datasets):
    wrong = datasets["bound_grid"].copy(deep=True)
    wrong["level"][0, 0] += 1
    assert limits.bound({**datasets, "bound_grid": wrong}).facts["differ"] == 1


def test_tails_are_drawn_straight_where_they_belong(figures):
    """Exponentials over N, powers of N over log N; and what the text says of them."""
    figure = figures["fig-concentration"]
    assert [panel.options["logx"] for panel in figure.panels] == [False, True, False, True]
    linear, logarithmic = (
        [part for part in panel.content if isinstance(part, hv.Curve) and len(part) > 20] for panel in figure.panels[:2]
    )
    bends = [
        [np.abs(np.diff(np.diff(np.log(c["frequency"])) / np.diff(scale(c["N"])))).max() < 1e-9 for c in curves]
        for scale, curves in ((np.array, linear), (np.log, logarithmic))
    ]
    assert bends == [[True, True, False, False], [False, False, True, True]]
    system, control = figure.facts["slopes"]["system"], figure.facts["slopes"]["control"]
    assert 1 < system[0] < system[1]
    assert control == pytest.approx((0.5, 0.5), abs=0.01)
    assert figure.facts["medians"] == pytest.approx([200**-0.5, 700**-0.5])


def test_what_the_figures_of_finite_size_tell(datasets, facts):
    window, orders = facts["fig-critical"], facts["fig-finite-size"]
    assert {d: found[0] for d, found in window["constants"].items()} == pytest.approx({2: 1.0, 3: 1.5})
    assert window["exponents"][2][1][0] == pytest.approx(-1 / 3)
    assert window["exponents"][3][2][0] == pytest.approx(-1 / 4)
    assert orders["later"]["level"] == 2
    _, _, enough = orders["later"]["by_d"][1]
    runs = datasets["finite_size"].sel(point="step-2", d=1)
    part = runs.response_remainder * runs["load"] / runs.lowest_share  # falls as N^(-1/3)
    assert enough == pytest.approx(10_000 * (float(part.sel(N=10_000)) / 0.1) ** 3)
    assert window["held"] == window["of"] == 5  # the made-up exponents are those derived
    for level, found in window["ratios"].items():
        for d, (first, last, _) in found.items():
            assert (first, last) == pytest.approx((0.5 / lowest_share_limit(level, d),) * 2)
    assert all(change == pytest.approx((0, 0), abs=1e-9) for change in window["change"].values())


def test_a_difference_that_changes_its_sign_is_not_seen_directly(datasets):
    runs = datasets["finite_size"].copy(deep=True)
    before = {(c["level"], c["d"]): c["direct"] for c in finite_size({"finite_size": runs}).facts["courses"]}
    runs.response_excess.loc[{"point": "step-2", "d": 1, "N": 100}] = 0.1
    (changed,) = [
        c for c in finite_size({"finite_size": runs}).facts["courses"] if before[c["level"], c["d"]] != c["direct"]
    ]
    assert (changed["level"], changed["d"], changed["direct"]) == (2, 1, False)
    assert changed["first"][:2] == (100, 0.1)


def test_what_is_above_the_bound_is_told_for_each_n_away_from_steps(datasets):
    runs = datasets["stationary"].copy(deep=True)
    runs.mass_above_bound.loc[{"policy": "sq-memory", "N": 100, "d": 2, "λ": 0.9}] = 0.02
    runs.mass_above_bound.loc[{"policy": "sq-memory", "N": 100, "d": 2, "λ": 0.52}] = 0.5  # next to the threshold
    above = limits.bound({**datasets, "stationary": runs}).facts["above"]
    assert list(above) == runs.N.values.tolist()
    assert above[100][0] == 0.02


def test_what_the_relaxation_figure_tells(datasets, figures):
    figure = figures["fig-convergence"]
    facts, ds = figure.facts, datasets["convergence"]
    assert len(figure.panels) == 2 + ds.sizes["d"]
    assert facts["paths"] == ds["settled"].size
    assert facts["unsettled"] == facts["unsettled_at_steps"] == 3  # the step from Q = 2 to 3, for each d
    assert facts["exponents"] == {2: ((1.0, 0.01), (1.0, 0.01))}
    assert facts["as_derived"] == facts["algebraic"] == 3
    assert facts["agree"] == facts["pairs"] > 0
    wrong = ds.copy(deep=True)
    wrong["spectral_gap"][0, 0] *= 1.5
    assert relaxation.relaxation({**datasets, "convergence": wrong}).facts["agree"] == facts["pairs"] - 1


def test_what_the_figure_of_service_tells(figures):
    facts = figures["fig-service"].facts
    assert facts["laws"] == ["deterministic", "erlang(stages=4)", "exponential", "hyperexponential(scv=4.0)"]
    assert (facts["d"], facts["load"], facts["N"]) == ([2, 3], 0.95, 10_000)
    assert {d: list(bounds.values()) for d, bounds in facts["bounds"].items()} == {1: [4, 4, 5, 6], 2: [3, 3, 3, 4]}
    assert (facts["cells"], facts["flagged"]) == (4 * 3 * 5, 0)
    assert facts["occupancy_error"] < 1e-9
    assert 0 < facts["share_error"] < 0.01
    assert all(queue_bound(lam, d, law) != queue_bound(lam, d) for law, d, lam in facts["told"])
    assert {law for law, *_ in facts["told"]} | set(facts["untold"]) == set(facts["laws"]) - {"exponential"}


def test_the_policy_of_a_user_is_in_the_comparison(figures):
    figure = figures["fig-policies"]
    keys = {key.label: key.color for key in figure.key}
    assert len(keys) == len(set(keys.values())) == 8
    own = "my-policy(2), registered in the notebook"
    assert own in keys
    for panel in figure.panels:
        assert keys[own] in json.dumps(plots.bokeh_item(panel, "here"))
        assert keys[own].lower() in plots.svg(panel).decode()
    assert figure.facts["rows"]["my-policy"]["description"] is None
    assert figure.facts["rows"]["sq"]["label"] == "sq(2)"
    assert list(figure.facts["rows"])[:2] == ["random", "my-policy"]  # the slowest first
    assert figure.facts["rows"]["jsq"]["messages_per_job"] == 20_000
    assert (figure.facts["load"], figure.facts["flagged"], figure.facts["cells"]) == (0.9, 0, 8 * 3 * 5)


def test_the_figure_of_messages_shows_what_was_not_seen_as_a_bound(datasets):
    """At λ = 0.6 three probes and a memory leave no delay: no point, and a triangle at what may have been missed."""
    runs = constant_d()
    figure = messages({"constant_d": runs})
    load, N = figure.controls
    assert (load.values, N.values) == (["0.6", "0.8"], ["100", "10000", "1000000"])
    assert all(len(panel.frames) == 6 for panel in figure.panels)
    frame = figure.panels[0].frames[2]  # λ = 0.6, N = 10^6
    assert frame["points sq-memory"][2].tolist() == [2]
    at, bound, d = frame["unseen sq-memory"]
    assert (at.tolist(), d.tolist()) == ([6, 12], [3, 6])
    assert bound == pytest.approx(10 / (4 * 0.6 * 10**6 * 50))
    assert frame["points sq"][2].tolist() == [2, 3, 6]
    assert frame["constant"][0] == [6, 6]
    rows = figure.facts["rows"]
    assert (rows["sq-memory(6)"]["slots"], rows["jiq"]["slots"], rows["sq(6)"]["slots"]) == (10**6, 10**6, 0)
    ladder = figure.panels[1].frames[3]  # λ = 0.8: its d is 6
    assert ladder["points sq"][2].tolist() == [6, 6, 6]
    assert ladder["unseen sq-memory"][0].tolist() == [100, 10_000, 10**6]


def test_the_figure_of_heavy_traffic_tells_how_far_the_slopes_are(datasets):
    facts = heavy_traffic(datasets).facts
    for found in (facts["slopes"], facts["without"]):
        for slope, limit in found.values():
            assert slope == pytest.approx(limit, rel=2e-3)
    assert 1 not in facts["without"]
    assert facts["small"]["N"] == 100
    assert facts["small"]["idle"] == pytest.approx(1)
    assert facts["small"]["mean_response_time"] - facts["small"]["limit"] == pytest.approx(0.3)


def portrait_of(d, loads):
    return portrait({"portrait": made_up_portrait(d, loads, np.linspace(0, 3, 30) ** 2)})


def test_frames_exchange_what_is_drawn():
    """The frame that is drawn first is the content; every other has the same columns, and other values."""
    figure = portrait_of((1, 2, 3), (0.3, 0.5, 0.9))
    probes, load = figure.controls
    assert (probes.values, load.values) == (["1", "2", "3"], ["0.3", "0.5", "0.9"])
    chosen = probes.first * len(load.values) + load.first
    for panel in figure.panels:
        item = plots.bokeh_item(panel, "here")
        sources = {
            model["id"]: dict(model["attributes"]["data"]["entries"])
            for model in models_in(item["doc"])
            if model["name"] == "ColumnDataSource"
        }
        assert len({json.dumps(frame) for frame in item["frames"]}) == 9
        for frame in item["frames"]:
            for source, columns in frame.items():
                assert columns.keys() == sources[source].keys()
                assert len({len(column) for column in columns.values()}) == 1
        for source, columns in item["frames"][chosen].items():
            for name in columns.keys() - {"modes"}:
                ours = [np.nan if value is None else value for value in columns[name]]
                np.testing.assert_allclose(ours, array_of(sources[source][name]), rtol=1e-3)


def models_in(node):
    """Yield every model of a bokeh document."""
    if isinstance(node, dict):
        if {"id", "name", "attributes"} <= node.keys():
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from models_in(part)


def array_of(column):
    """Return a column of a bokeh document as an array."""
    data = gzip.decompress(base64.b64decode(column["array"]["data"]))
    return np.frombuffer(data, column["dtype"]).reshape(column["shape"])


def test_the_page_holds_no_more_frames_than_it_may():
    figure = portrait_of(range(1, 9), np.linspace(0.1, 0.9, 30).round(3).tolist())
    assert [len(control.values) for control in figure.controls] == [8, 6]
    assert all(len(panel.frames) == figure.facts["frames"] == 48 for panel in figure.panels)


def test_print_shows_the_portrait_around_the_threshold():
    figure = portrait_of((2, 1), (0.9, 0.5, 0.3))
    titles = ["λ = 0.3 (below)", "λ = 0.5 (threshold)", "λ = 0.9 (above)"]
    assert [panel.title for panel in figure.printed_panels.values()] == 2 * titles
    assert figure.facts["loads"] == [0.3, 0.5, 0.9]
    assert figure.print_columns == 3


@pytest.mark.parametrize("loads", [(0.5,), (0.3,), (0.7, 0.9)])
def test_a_portrait_is_made_of_few_loads(loads):
    figure = portrait_of((2,), loads)
    assert figure.facts["loads"] == [loads[-1]]
    for panel in figure.printed_panels.values():
        ElementTree.fromstring(plots.svg(panel))


def test_twins_show_the_same_panel(figures):
    panel = figures["fig-idle"].panels[0]
    item = plots.bokeh_item(panel, "here")
    assert item["target_id"] == "here"
    assert "load λ" in json.dumps(item, ensure_ascii=False)
    drawing = ElementTree.fromstring(plots.svg(panel))
    assert drawing.tag.endswith("svg")


def test_pictures_are_reproducible(datasets):
    first, second = (plots.svg_row(plots.story(datasets), (8, 3), {"Source": "hash"}) for _ in range(2))
    assert first == second
    assert b"hash" in first


def test_the_script_brings_no_tags(datasets):
    assert "Bokeh" in plots.script()
    assert "es-module-shims" not in plots.script()


def test_swatches_are_drawings():
    for look in ("solid", "dashed", "dotted", "dot", "ring", "triangle", "star", "area"):
        ElementTree.fromstring(plots.swatch(plots.Key("a", "#000000", look)))


def test_the_sample_is_a_distribution(datasets):
    np.testing.assert_allclose(datasets["stationary"]["occupancy"].sum("queue_length"), 1)
