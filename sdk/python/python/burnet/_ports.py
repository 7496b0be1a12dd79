"""The reserved ports of OpenFlow 1.3 (1.3.5, A.2.1). They serve for every version of the switch."""

from enum import IntEnum
from typing import Final

class ReservedPort(IntEnum):
    """A reserved port number."""

    IN_PORT = 0xFFFF_FFF8
    TABLE = 0xFFFF_FFF9
    NORMAL = 0xFFFF_FFFA
    FLOOD = 0xFFFF_FFFB
    ALL = 0xFFFF_FFFC
    CONTROLLER = 0xFFFF_FFFD
    LOCAL = 0xFFFF_FFFE
    ANY = 0xFFFF_FFFF


IN_PORT: Final = ReservedPort.IN_PORT
"""The packet's input port."""
TABLE: Final = ReservedPort.TABLE
"""Through the flow tables, for a packet-out."""
NORMAL: Final = ReservedPort.NORMAL
"""The switch's traditional forwarding."""
FLOOD: Final = ReservedPort.FLOOD
"""Out of every port that floods, but not back."""
ALL: Final = ReservedPort.ALL
"""Out of every port, but not back."""
CONTROLLER: Final = ReservedPort.CONTROLLER
"""To the controller, as a packet-in."""
LOCAL: Final = ReservedPort.LOCAL
"""The switch's own network stack."""
ANY: Final = ReservedPort.ANY
"""A wildcard in requests."""
