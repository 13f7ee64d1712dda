"""What is observed: a graph with features and labels, what a label is, datasets and tables."""
