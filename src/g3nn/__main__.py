"""`python -m g3nn` works like `g3nn`."""

from g3nn.cli import main

main()
