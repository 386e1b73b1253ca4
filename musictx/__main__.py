"""`python -m musictx` is `musictx`."""

from musictx.cli import main

main()
