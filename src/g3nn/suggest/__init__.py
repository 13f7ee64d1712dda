"""Which node to label next, and which edge or label to check: strategies over beliefs, features and the graph.

Pure functions over arrays; `G3NNClassifier.suggest` and `G3NNRegressor.suggest` call them with what they know.
"""

from g3nn.suggest.choosing import LabelSuggestion, Suggestion, choose, first_nodes
from g3nn.suggest.edges import EdgeSuggestion, doubtful_edges
from g3nn.suggest.situation import Situation
from g3nn.suggest.strategies import STRATEGIES, Scores

__all__ = [
    "STRATEGIES",
    "EdgeSuggestion",
    "LabelSuggestion",
    "Scores",
    "Situation",
    "Suggestion",
    "choose",
    "doubtful_edges",
    "first_nodes",
]
