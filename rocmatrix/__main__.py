"""`python -m rocmatrix COMMAND`."""

import sys

from rocmatrix.cli.options.argparse_program import main

main(sys.argv[1:])
