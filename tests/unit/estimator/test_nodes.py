from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from g3nn.base.errors import InputError
from g3nn.estimator import Nodes

X = np.arange(12.0).reshape(6, 2)


def test_all_nodes_are_meant_at_first():
    nodes = Nodes(X, [[0, 1], [1, 2]])
    assert (len(nodes), nodes.shape) == (6, (6,))
    np.testing.assert_array_equal(nodes.index, np.arange(6))


def test_an_index_keeps_the_graph_and_counts_among_the_chosen():
    nodes = Nodes(X, [[0], [1]], directed=True)
    some = nodes[[1, 3, 5]][[True, False, True]]
    assert some.X is X
    assert some.directed
    np.testing.assert_array_equal(some.index, [1, 5])
    np.testing.assert_array_equal(nodes[2:4].index, [2, 3])
    np.testing.assert_array_equal(nodes[4].index, [4])


def test_scikit_learn_takes_rows_of_it():
    chosen = _safe_indexing(Nodes(X, None), np.array([4, 2]))
    assert isinstance(chosen, Nodes)
    np.testing.assert_array_equal(chosen.index, [4, 2])


@pytest.mark.parametrize("features", [X.tolist(), sp.csr_array(X)], ids=["list", "sparse"])
def test_nodes_are_counted_in_any_matrix(features):
    assert repr(Nodes(features, None)[:2]) == "Nodes(2 of 6)"


@pytest.mark.parametrize("features", [3, np.array(3.0)], ids=["number", "scalar"])
def test_what_has_no_rows_is_refused(features):
    with pytest.raises(InputError, match="X: got"):
        Nodes(features, None)
