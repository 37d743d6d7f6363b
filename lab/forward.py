# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the SSH of containers reachable on 127.0.0.1, with one process for each lab: `python -m lab.forward FOLDER FD:NAMESPACE ...`.

A socket belongs to the namespace in which it was created, so it is created there and used here.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import socket
import sys

from lab import namespace

SSH_PORT = 22
CHUNK_BYTES = 65536


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except ConnectionError:
        writer.close()


async def _serve(there: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward one connection in both directions."""
    try:
        inner = namespace.inside(there, socket.socket)
        inner.setblocking(False)
        await asyncio.get_running_loop().sock_connect(inner, ("127.0.0.1", SSH_PORT))
        far_reader, far_writer = await asyncio.open_connection(sock=inner)
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        far_writer.close()
    except OSError:
        # The container is off, or has not booted yet: the caller sees a closed connection.
        pass
    finally:
        writer.close()


async def _main(routes: list[str]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    for route in routes:
        descriptor, there = route.split(":", 1)
        listener = socket.socket(fileno=int(descriptor))
        await asyncio.start_server(functools.partial(_serve, there), sock=listener)
    await ended.wait()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[2:]))
