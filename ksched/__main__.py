"""`python -m ksched`: the command line."""

from ksched.cli import main

if __name__ == "__main__":
    main()
