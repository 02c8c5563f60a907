"""`python -m sortedf` is the command line."""

from sortedf.cli.main import main

main()
