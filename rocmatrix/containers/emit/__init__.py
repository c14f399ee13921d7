"""One run spec as text for each engine and scheduler: pure functions, one module a target.

Every emitter carries every kind of setting; one that a target has no word for is refused, never dropped unseen.
"""

from rocmatrix.containers.emit.compose import compose_file
from rocmatrix.containers.emit.docker import docker_options, docker_run_argv, docker_sdk_arguments

__all__ = ["compose_file", "docker_options", "docker_run_argv", "docker_sdk_arguments"]
