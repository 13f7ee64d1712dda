"""The joint model of labels and graph: its components, what they read, and the objective they are trained on."""
