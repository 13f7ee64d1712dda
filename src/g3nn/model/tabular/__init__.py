"""p(y | x) of each node on its own, by a classifier or regressor of scikit-learn."""

from g3nn.model.tabular.cross_fit import CrossFitted, FoldModel
from g3nn.model.tabular.models import NAMED, Linear, Neighbourhood, Trees
from g3nn.model.tabular.paths import PathColumns, Paths

__all__ = ["NAMED", "CrossFitted", "FoldModel", "Linear", "Neighbourhood", "PathColumns", "Paths", "Trees"]
