"""The tasks. `./invokew --list` names them; each is one call into rocmatrix (see rocmatrix/tasks/)."""

from rocmatrix.tasks import collection

namespace = collection()
