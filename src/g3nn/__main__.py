"""The command `g3nn`, also as `python -m g3nn`."""

import sys


def main() -> None:
    """Run the command. Control-C ends it from the beginning: loading it takes longer than some commands."""
    try:
        from g3nn.cli import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
