"""The assortative block model for g3nn, and a small graph to try it on."""
