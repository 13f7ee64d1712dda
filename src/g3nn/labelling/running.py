"""Serving the page on this machine until somebody ends it."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from g3nn.base.errors import DataError

HOST, PORT, PORTS = "127.0.0.1", 8765, 50
"""The first port that is free of so many is taken."""


def listening(port: int) -> socket.socket:
    """A socket on the first free port from this one on; 0: any. Nobody but this machine can reach it."""
    for one in range(port, min(port + PORTS, 65_536)) if port else [0]:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Right after an end the port counts as in use for a while; a server that still listens keeps it.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, one))
            made.listen(128)
        except OSError:
            made.close()
        else:
            return made
    raise DataError(f"no free port among {port} to {port + PORTS - 1}. Name another one with --port.")


def serve(app: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Until control-C or a request to end. ready: called once the page can be opened."""
    import uvicorn

    # The address holds the token, so no request is logged.
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
    server = uvicorn.Server(config)
    ended = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    former = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    try:
        thread.start()
        ready()
        while thread.is_alive() and not ended.wait(0.2):
            pass
    finally:
        server.should_exit = True
        thread.join(5)
        for one, handler in former.items():
            signal.signal(one, handler)
