"""The tasks. `./invokew --list` names them; each is one call into rocmatrix (see rocmatrix/cli/commands/)."""

from rocmatrix.cli.options.invoke_tasks import collection

namespace = collection()
