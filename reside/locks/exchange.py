"""The requests and answers of one connection to etcd, one after the other. Pure: bytes in, bytes out.

The protocol is that of h11, as in httpx2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import h11

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_MAX_BYTES: Final = 16 * 1024 * 1024


class Answer(NamedTuple):
    """The status and the text of an answer, and whether the connection can be used again after it."""

    status: int
    text: str
    keeps: bool = True


class Exchange:
    """The state of the protocol. An error ends it."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._status = 0
        self._parts: list[bytes] = []

    def ask(self, address: SplitResult, path: str, body: bytes, token: str | None) -> bytes:
        """Return the bytes of a request.

        Raises:
            ConnectionError: the token can't be sent.
        """
        self._status, self._parts = 0, []
        headers = [
            ("Host", address.netloc.rpartition("@")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            *([] if token is None else [("Authorization", token)]),
        ]
        try:
            request = h11.Request(method="POST", target=f"{address.path}{path}", headers=headers)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise ConnectionError("the token of etcd's login is malformed") from None  # all else is ours
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        return b"".join([self._http.send(event) or b"" for event in events])

    def receive(self, data: bytes) -> Answer | None:
        """Return the answer to the last request, once all of it has arrived; None: more has to arrive.

        Raises:
            ConnectionError: it is no answer of HTTP, or it is too long.
        """
        try:
            self._http.receive_data(data)
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Response):
                    self._status = event.status_code
                elif isinstance(event, h11.Data):
                    self._add(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    return Answer(self._status, b"".join(self._parts).decode("utf-8", "replace"), self._next())
                elif event is h11.NEED_DATA or event is h11.PAUSED:
                    return None
        except h11.RemoteProtocolError as error:
            raise ConnectionError(f"the answer is not HTTP: {error}") from None

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        if sum(map(len, self._parts)) > _MAX_BYTES:
            raise ConnectionError(f"the answer has more than {_MAX_BYTES} bytes")

    def _next(self) -> bool:
        """Prepare for the next request; return whether there can be one."""
        if self._http.their_state is not h11.DONE or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        return True
