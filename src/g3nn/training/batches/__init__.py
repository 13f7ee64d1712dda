"""Parts of a graph that stand for the whole: sampled neighbourhoods, and pairs for the graph term."""
