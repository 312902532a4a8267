"""Take all network interfaces but the loopback away from a pod. Runs in a container that starts before all others.

Containers of a pod share its network, and those that start later lack the right (CAP_NET_ADMIN) to turn an interface
on. Exits with 1, so that they do not start, where an interface stays on.
"""

import fcntl
import socket
import struct
import sys

GET_FLAGS, SET_FLAGS = 0x8913, 0x8914
"""SIOCGIFFLAGS and SIOCSIFFLAGS of <linux/sockios.h>, for a `struct ifreq`: 16 bytes of name, 2 of flags, 22 more."""
UP = 1


def request_flags(probe: socket.socket, name: str, request: int, flags: int = 0) -> int:
    """Get or set the flags of an interface; return them."""
    answer = fcntl.ioctl(probe, request, struct.pack("16sH22x", name.encode(), flags))
    return int(struct.unpack("16sH22x", answer)[1])


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    for name in names:
        request_flags(probe, name, SET_FLAGS, request_flags(probe, name, GET_FLAGS) & ~UP)
    still_up = [
        name for _, name in socket.if_nameindex() if name != "lo" and request_flags(probe, name, GET_FLAGS) & UP
    ]
if still_up:
    sys.exit("still on: " + ", ".join(still_up))
