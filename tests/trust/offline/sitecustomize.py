"""Loaded by Python at its start: no connection but to this machine, where the system does not let a test forbid it."""

import socket

LOCAL = ("127.", "::1", "localhost")


def _local_only(method):
    def connect(self, address):
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(LOCAL):
            raise PermissionError(f"no network: {address}")
        return method(self, address)

    return connect


class Socket(socket.socket):
    """A socket that reaches this machine only."""

    connect = _local_only(socket.socket.connect)
    connect_ex = _local_only(socket.socket.connect_ex)


socket.socket = Socket
