"""A way to the engine that a test controls: it can look at requests, hold an answer back, and go away."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Stands between programs and the engine. `seen` is called with each block that a program sends.

    It may return "stall": nothing more of this connection goes either way; "mute": the engine's answer is kept back;
    "gone": the way to the engine ends for all.
    """

    def __init__(self, path, seen, real="/var/run/docker.sock"):
        self.path, self.seen, self.real, self.open = path, seen, real, []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def environment(self):
        return {"DOCKER_HOST": f"unix://{self.path}"}

    def _serve(self):
        with suppress(OSError):
            while True:
                here, _ = self.server.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.real)
                self.open += [here, there]
                mute = threading.Event()
                threading.Thread(target=self._requests, args=(here, there, mute), daemon=True).start()
                threading.Thread(target=self._answers, args=(there, here, mute), daemon=True).start()

    def _requests(self, source, target, mute):
        with suppress(OSError):
            while block := source.recv(1 << 16):
                verdict = self.seen(block)
                if verdict == "gone":
                    self.gone()
                if verdict == "stall":
                    return
                if verdict == "mute":
                    mute.set()
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)

    def _answers(self, source, target, mute):
        with suppress(OSError):
            while block := source.recv(1 << 16):
                if mute.is_set():
                    return
                target.sendall(block)
            target.shutdown(socket.SHUT_WR)

    def gone(self):
        for each in (self.server, *self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                each.close()
