"""What a fit learns, and its answers for old and new nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.estimator import G3NNClassifier, Nodes
from g3nn.estimator.problem import read_problem
from g3nn.graph.given import Given, take_apart

pytestmark = pytest.mark.filterwarnings("ignore:.* new nodes have no edge")


def tasks_of(graph, inductive, **parameters):
    """The whole task, the one that is trained on, its nodes, and the form and the means of the features."""
    classifier, problems = G3NNClassifier(**{"missing": "error", "inductive": inductive, **parameters}), Problems()
    given = take_apart(Given(graph.X, graph.y, graph.edges, graph.val, False), problems)
    problem = read_problem(classifier.get_params(), classifier.outcome_for(given.y, problems), given, problems, [])
    return problem.whole[0], problem.task, problem.seen, problem.form, problem.whole[1]


def test_one_task_unless_the_fit_is_inductive(graph):
    whole, training, seen, _, means = tasks_of(graph, inductive=False)
    assert whole is training
    assert means is None
    assert len(seen) == whole.num_nodes
    np.testing.assert_array_equal(whole.val, graph.val)


def test_inductive_training_sees_labelled_nodes_alone(graph):
    whole, training, _, form, _ = tasks_of(graph, inductive=True)
    known = np.flatnonzero(graph.y >= 0)
    assert training.num_nodes == known.size
    np.testing.assert_allclose(training.features, (graph.X[known] - form.mean) / form.scale, rtol=1e-5)
    np.testing.assert_array_equal(known[training.val], graph.val)
    inside = np.isin(graph.edges, known).all(axis=0)
    assert training.num_edges == inside.sum()
    assert np.isin(known[training.edges], graph.edges[:, inside]).all()
    assert whole.num_nodes == 150


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_inductive_filling_never_looks_at_nodes_left_out(graph, kind):
    X = graph.X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    other = X.copy()
    other[graph.y < 0] = 5.0
    seen = []
    for features in (X, other):
        tasks = tasks_of(graph._replace(X=kind(features)), inductive=True, missing="impute")[:2]
        whole, part = (task.features.toarray() if sp.issparse(task.features) else task.features for task in tasks)
        assert np.isfinite(whole).all()
        np.testing.assert_array_equal(whole[graph.y >= 0], part)
        seen.append(part)
    np.testing.assert_array_equal(*seen)


def test_a_column_without_values_cannot_be_filled(graph):
    X = graph.X.copy()
    X[:, 2] = np.nan
    with pytest.raises(InputError, match="no value at all in column 2"):
        tasks_of(graph._replace(X=X), inductive=False, missing="impute")


@pytest.mark.slow
def test_an_inductive_fit_is_a_fit_without_the_other_nodes(graph, quick):
    known, rest = np.flatnonzero(graph.y >= 0), np.flatnonzero(graph.y < 0)
    number = np.empty(150, dtype=int)
    number[np.concatenate([known, rest])] = np.arange(150)
    inside = np.isin(graph.edges, known).all(axis=0)
    inductive = quick(inductive=True).fit(graph.X, graph.y, graph.edges, val=graph.val)
    without = quick().fit(graph.X[known], graph.y[known], number[graph.edges[:, inside]], val=number[graph.val])
    assert inductive.temperature_ == pytest.approx(without.temperature_)
    later = without.predict_proba(graph.X[rest], number[graph.edges[:, ~inside]])
    np.testing.assert_allclose(inductive.predict_proba()[rest], later, atol=1e-5)


@pytest.mark.slow
def test_a_refit_learns_from_all_labels_and_keeps_the_calibration(fitted, graph, quick):
    again = quick(refit=True).fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert again.temperature_ == fitted.temperature_
    assert again.n_iter_ <= fitted.n_iter_
    scores = [one.fitted_.answerer.calibrations["linked"].scores for one in (again, fitted)]
    np.testing.assert_array_equal(*scores)
    assert not np.allclose(again.predict_proba(), fitted.predict_proba())
    nll = [one.evaluate(graph.val, graph.truth[graph.val])["nll"] for one in (again, fitted)]
    assert nll[0] < nll[1], "the labels it validated on were learned now"


@pytest.mark.slow
def test_a_refit_keeps_members_and_weights(heavy, small_panel):
    plain, again = (small_panel(refit=refit).fit(heavy.X, heavy.y, heavy.edges, val=heavy.val) for refit in (0, 1))
    before, after = (one.fitted_.answerer for one in (plain, again))
    kept = ("name", "place", "weight", "isolated_weight", "temperature")
    assert [[getattr(one, name) for name in kept] for one in after.members] == [
        [getattr(one, name) for name in kept] for one in before.members
    ]
    for old, new in zip(before.members, after.members, strict=True):
        assert old.view.name == new.view.name
        one, other = (replace(before, members=(member,))(plain.task_).answer for member in (old, new))
        assert not np.allclose(one, other), "it has learned from more labels"
    for old, new in zip(before.networks, after.networks, strict=True):
        assert (old.seeds, old.isolated_answer) == (new.seeds, new.isolated_answer)
    assert (again.model_, again.panel_, again.temperature_) == (plain.model_, plain.panel_, plain.temperature_)
    np.testing.assert_array_equal(after.calibrations["linked"].scores, before.calibrations["linked"].scores)
    np.testing.assert_array_equal(again.fitted_.seen, np.flatnonzero(heavy.y >= 0))


def test_label_propagation_is_refitted_with_the_validation_labels(graph, quick):
    plain, again = (
        quick(model="label-propagation", refit=refit).fit(graph.X, graph.y, graph.edges, val=graph.val)
        for refit in (False, True)
    )
    assert not np.allclose(plain.predict_proba(), again.predict_proba())


@pytest.mark.slow
def test_an_ensemble_is_the_mean_of_its_replicas(graph, quick):
    first, both = (quick(ensemble=R).fit(graph.X, graph.y, graph.edges, val=graph.val).fitted_ for R in (1, 2))
    networks = [one.answerer.networks[0] for one in (first, both)]
    assert len(networks[1].seeds) == 2
    assert networks[0].seeds == networks[1].seeds[:1]
    states = [one.model.state_dict()["posterior.weight1"][:1].numpy() for one in networks]
    np.testing.assert_allclose(*states, atol=1e-5)


def test_isolated_nodes_have_their_own_calibration_and_new_ones_are_answered_alike(isolated, quick):
    classifier = quick().fit(isolated.X, isolated.y, isolated.edges, val=isolated.val)
    answers = classifier.fitted_.answers
    assert answers.isolated[:10].all()
    scaling = classifier.fitted_.answerer.calibrations["isolated"].scaling
    assert scaling.temperature == classifier.isolated_temperature_
    np.testing.assert_allclose(classifier.predict_proba()[:10], np.exp(scaling(answers.answer[:10])))
    np.testing.assert_allclose(classifier.predict_proba(isolated.X[:10]), classifier.predict_proba()[:10], atol=1e-6)


def neighbours(graph, node):
    """The neighbours of a node."""
    first, second = graph.edges
    return np.concatenate([second[first == node], first[second == node]])


def copies(graph, nodes):
    """Edges of copies of these nodes to the neighbours of the originals."""
    n = len(graph.X)
    pairs = [(n + j, k) for j, node in enumerate(nodes) for k in neighbours(graph, node)]
    return np.array(pairs).T


def test_nothing_given_means_the_fitted_nodes(fitted, graph):
    assert fitted.predict_proba().shape == (150, 3)
    with pytest.raises(InputError, match="edges without X"):
        fitted.predict(edges=graph.edges)


def test_the_features_of_the_fit_mean_the_fitted_nodes(fitted, graph):
    expected = fitted.predict_proba()
    for same in (graph.X, sp.csr_array(graph.X), graph.X.tolist()):
        np.testing.assert_array_equal(fitted.predict_proba(same), expected)
    np.testing.assert_array_equal(fitted.predict_proba(graph.X, graph.edges[::-1].T), expected)
    assert fitted.score(graph.X, graph.truth) == (fitted.predict() == graph.truth).mean()
    for other in (graph.edges[:, 1:], graph.edges + 150):
        with pytest.raises(InputError, match=r"Nodes\(X, edges\) asks about the same nodes in another graph"):
            fitted.predict(graph.X, other)


def test_new_nodes_need_edges_of_their_own(fitted, graph):
    with pytest.raises(InputError, match=r"edges among fitted nodes alone; expected edges of the new nodes 150\.\.152"):
        fitted.predict(graph.X[:3], graph.edges)
    with pytest.warns(G3NNWarning, match="2 of 3 new nodes have no edge"):
        fitted.predict(graph.X[:3], [[0], [151]])


def test_nodes_that_are_taken_out_and_put_back_get_the_same_answer(graph, quick):
    """Fit on a part of the graph; new nodes with their edges are then answered as on the whole graph."""
    kept, new = np.arange(120), np.arange(120, 150)
    inside, outside = (graph.edges < 120).all(axis=0), (graph.edges >= 120).any(axis=0)
    y = graph.y[kept]
    part = quick().fit(graph.X[kept], y, graph.edges[:, inside])
    expected = part.predict_proba(Nodes(graph.X, graph.edges)[new])
    np.testing.assert_allclose(part.predict_proba(graph.X[new], graph.edges[:, outside]), expected, atol=1e-6)
    # Edges that the fit knows already do no harm.
    np.testing.assert_allclose(part.predict_proba(graph.X[new], graph.edges), expected, atol=1e-6)


def test_a_posterior_that_looks_at_labels_sees_them_beside_new_nodes(graph, quick):
    """New nodes next to labelled ones are answered as in an inductive fit that had them from the start."""
    known = np.flatnonzero(graph.y >= 0)
    order = np.concatenate([known, np.flatnonzero(graph.y < 0)])
    number = np.argsort(order)
    edges, n = number[graph.edges], known.size
    inside = (edges < n).all(axis=0)
    val = number[graph.val]
    part = quick(model="lgcn").fit(graph.X[known], graph.y[known], edges[:, inside], val=val)
    whole = quick(model="lgcn", inductive=True).fit(graph.X[order], graph.y[order], edges, val=val)
    new = part.predict_proba(graph.X[order[n:]], edges[:, ~inside])
    np.testing.assert_allclose(new, whole.predict_proba()[n:], atol=1e-5)


def test_a_copy_of_an_mlp_s_node_gets_the_same_answer(graph, quick):
    mlp = quick(model="mlp").fit(graph.X, graph.y, graph.edges, val=graph.val)
    linked = np.unique(graph.edges)[:7]
    new = mlp.predict_proba(graph.X[linked], copies(graph, linked))
    np.testing.assert_allclose(new, mlp.predict_proba()[linked], atol=1e-6)


def test_new_nodes_with_some_or_no_edges(fitted, graph):
    X = graph.X[:3]
    edges = copies(graph, [1])[:, :1] + [[1], [0]]  # the second new node has an edge
    mixed, alone = fitted.predict_proba(X, edges), fitted.predict_proba(X)
    np.testing.assert_allclose(mixed[[0, 2]], alone[[0, 2]], atol=1e-6)
    assert not np.allclose(mixed[1], alone[1])


def test_sparse_and_dense_may_meet(fitted, graph, quick):
    sparse = quick().fit(sp.csr_array(graph.X), graph.y, graph.edges, val=graph.val)
    np.testing.assert_allclose(sparse.predict_proba(), fitted.predict_proba(), atol=1e-3)
    edges = np.array([150, 151]), np.array([0, 1])
    for classifier in (sparse, fitted):
        both = [classifier.predict_proba(kind(graph.X[:2]), edges) for kind in (np.array, sp.csr_array)]
        np.testing.assert_allclose(*both, atol=1e-6)


def test_answers_do_not_change_the_fitted_model(fitted, graph):
    before = fitted.predict_proba().copy()
    fitted.predict_proba(graph.X[:5], np.array([[150], [3]]))
    np.testing.assert_array_equal(fitted.predict_proba(), before)


def test_nodes_of_the_fitted_graph(fitted, graph):
    nodes = Nodes(graph.X, graph.edges)[[9, 2, 140]]
    np.testing.assert_array_equal(fitted.predict_proba(nodes), fitted.predict_proba()[[9, 2, 140]])
    with pytest.raises(InputError, match="Nodes hold their own"):
        fitted.predict(nodes, graph.edges)


def test_columns_go_by_name(graph, quick):
    names = list("abcdef")
    frame = pa.table(dict(zip(names, graph.X.T, strict=True)))
    classifier = quick(epochs=5).fit(frame, graph.y, graph.edges, val=graph.val)
    assert classifier.feature_names_in_.tolist() == names
    turned = frame.select(names[::-1]).slice(0, 4)
    with pytest.warns(G3NNWarning, match="4 of 4 new nodes have no edge"):
        np.testing.assert_array_equal(classifier.predict_proba(turned), classifier.predict_proba(graph.X[:4]))
    with (
        pytest.warns(G3NNWarning, match="column 'z': columns that the model was not fitted with; left out"),
        pytest.raises(InputError, match="no column 'f'"),
    ):
        classifier.predict(frame.rename_columns([*names[:5], "z"]))


@pytest.mark.parametrize(
    ("X", "edges", "said"),
    [
        (np.zeros((2, 5)), None, "5 columns"),
        (np.zeros((2, 6)), [[150], [152]], "outside the graph"),
        (np.zeros((0, 6)), None, "shape"),
    ],
)
def test_what_cannot_be_answered_is_refused(fitted, X, edges, said):
    with pytest.raises(InputError, match=said):
        fitted.predict(X, edges)


def test_label_propagation_answers_in_its_own_graph_only(graph, quick):
    classifier = quick(model="label-propagation").fit(graph.X, graph.y, graph.edges, val=graph.val)
    assert classifier.predict_proba().shape == (150, 3)
    assert classifier.predict(Nodes(graph.X, graph.edges)[:3]).shape == (3,)
    known = classifier.fitted_.seen[0]
    assert classifier.predict(graph.X[:1], np.array([[150], [known]])) == graph.y[known]
    first, second = classifier.predict_proba(graph.X[:2])
    np.testing.assert_array_equal(first, second, "nothing is known of new nodes without edges")
    with pytest.raises(InputError, match="Fit again with the new nodes"):
        classifier.predict(Nodes(graph.X[:5], None))


def test_missing_features_of_new_nodes(graph, quick):
    rng = np.random.default_rng(0)
    X = graph.X.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    X[7] = np.nan
    classifier = quick(missing="impute").fit(X, graph.y, graph.edges, val=graph.val)
    assert np.isfinite(classifier.predict_proba()).all()
    means = np.nanmean(X, axis=0)
    unknown = np.full((1, 6), np.nan)
    np.testing.assert_allclose(classifier.predict_proba(unknown), classifier.predict_proba(means[None]), atol=1e-5)
    np.testing.assert_array_equal(classifier.predict_proba(Nodes(X, graph.edges)[[7]]), classifier.predict_proba()[[7]])
    linked = classifier.predict_proba(unknown, copies(graph, [7]))
    assert np.isfinite(linked).all()


def test_a_note_about_new_nodes_names_the_line_that_asked(fitted, graph):
    for ask in (fitted.predict, fitted.predict_proba, fitted.predict_entropy):
        with pytest.warns(G3NNWarning, match="new nodes have no edge") as notes:
            ask(graph.X[:2] + 1)
        assert notes[0].filename == __file__
