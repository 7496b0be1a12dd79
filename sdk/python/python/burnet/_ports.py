"""The reserved ports of OpenFlow 1.3 (1.3.5, A.2.1), whatever the switch speaks."""

from typing import Final

IN_PORT: Final = 0xFFFF_FFF8
"""Out of the port that the packet came in by."""
TABLE: Final = 0xFFFF_FFF9
"""Through the flow tables, for a packet-out."""
NORMAL: Final = 0xFFFF_FFFA
"""Through the switch's own, traditional forwarding."""
FLOOD: Final = 0xFFFF_FFFB
"""Out of every port that floods, but not back."""
ALL: Final = 0xFFFF_FFFC
"""Out of every port, but not back."""
CONTROLLER: Final = 0xFFFF_FFFD
"""To the controller, as a packet-in."""
LOCAL: Final = 0xFFFF_FFFE
"""The switch's own network stack."""
ANY: Final = 0xFFFF_FFFF
"""A wildcard in requests."""
