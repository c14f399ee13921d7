"""`python -m rocmatrix COMMAND`."""

import sys

from rocmatrix.cli.options.argparse_program import main
from rocmatrix.runtime.output.closed_streams import open_closed_streams

open_closed_streams()
main(sys.argv[1:])
