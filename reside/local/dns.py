"""Send one query to a DNS server, to check that the cluster's network and DNS work end to end."""

import secrets
import socket
import struct

_TIMEOUT = 1.0
_RECURSION_DESIRED = 0x0100
_CODE_MASK = 0x000F
_IPV4, _INTERNET = 1, 1
_HEADER = struct.Struct("!HHHHHH")


def resolves(server: str, name: str) -> bool:
    """Query `server` (UDP, port 53) for the IPv4 address of `name`; return whether there is one."""
    query_id = secrets.randbelow(1 << 16)
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split("."))
    header = _HEADER.pack(query_id, _RECURSION_DESIRED, 1, 0, 0, 0)
    query = header + labels + b"\0" + struct.pack("!HH", _IPV4, _INTERNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect((server, 53))
            connection.send(query)
            answer = connection.recv(4096)
        except OSError:
            return False  # the server is not reachable yet
    if len(answer) < _HEADER.size:
        return False
    answer_id, flags, _, answers, _, _ = _HEADER.unpack_from(answer)
    return bool(answer_id == query_id and flags & _CODE_MASK == 0 and answers > 0)
