"""The two ports, taken before anything slow begins, so that one that is in use is known at once."""

import contextlib
import dataclasses
import errno
import socket

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError

LOOPBACK_PAIR = ("127.0.0.1", "::1")  # `localhost` means either, depending on the client
ANY_PORT_TRIES = 20


@dataclasses.dataclass(frozen=True)
class Port:
    """One port on one or two addresses: bound, so that nobody else gets it; not listening yet."""

    sockets: tuple[socket.socket, ...]
    number: int
    url: str  # where a client on this machine reaches it

    def listen(self) -> None:
        """From here on clients can connect; they wait until they are served."""
        for sock in self.sockets:
            # Linux looks again, and would refuse over connections that an earlier run left to time out.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.listen()

    def close(self) -> None:
        """Give the port back; more than once is harmless."""
        for sock in self.sockets:
            sock.close()


@dataclasses.dataclass(frozen=True)
class Ports:
    """Both ports of a server."""

    chat: Port
    features: Port

    def close(self) -> None:
        """Give both ports back."""
        self.chat.close()
        self.features.close()


def bind_ports(config: NeuroscopeConfig) -> Ports:
    """Take both ports or neither. Raises UserError naming the flag and the port. Port 0 is any free one."""
    chat = _bind(config.host, config.port, "--port")
    try:
        return Ports(chat, _bind(config.host, config.features_port, "--features-port"))
    except UserError:
        chat.close()
        raise


def _bind(host: str, port: int, flag: str) -> Port:
    addresses = LOOPBACK_PAIR if host in ("localhost", "127.0.0.1") else (host,)
    for tries_left in reversed(range(ANY_PORT_TRIES)):
        try:
            return _bind_all(addresses, port)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE or not tries_left:
                raise UserError(_explain(error, host, port, flag)) from error
    raise AssertionError("unreachable")


def _bind_all(addresses: tuple[str, ...], port: int) -> Port:
    """The same port on each address; all but the first are left out where this machine does not have them."""
    with contextlib.ExitStack() as on_failure:
        first = _bound(addresses[0], port)
        sockets = [on_failure.enter_context(first)]
        for address in addresses[1:]:
            with contextlib.suppress(_AbsentError):
                sockets.append(on_failure.enter_context(_bound(address, first.getsockname()[1], optional=True)))
        on_failure.pop_all()
        host, number = first.getsockname()[:2]
        return Port(tuple(sockets), number, _url(host, number))


def _url(host: str, number: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"


class _AbsentError(Exception):
    """This machine has no such address."""


def _bound(address: str, port: int, optional: bool = False) -> socket.socket:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        if optional:
            raise _AbsentError from error
        raise
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # over connections of an earlier run
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        sock.bind(where)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # but from now on nobody beside us
    except OSError as error:
        sock.close()
        if optional and error.errno != errno.EADDRINUSE:
            raise _AbsentError from error
        raise
    return sock


def _explain(error: OSError, host: str, port: int, flag: str) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: this machine has no such address; use 127.0.0.1, or 0.0.0.0 for all of its addresses"
    if error.errno == errno.EADDRINUSE:
        return f"{flag} {port}: the port is in use on {host}; stop what listens there or choose another {flag}"
    if error.errno == errno.EACCES:
        return f"{flag} {port}: not permitted; choose a port above 1023"
    return f"{flag} {port}: cannot listen on {host}: {error.strerror}"
