"""The tasks. `./invokew --list` names them; each is one call into rocmatrix (see rocmatrix/cli/tasks/)."""

from rocmatrix.cli.tasks import collection

namespace = collection()
