"""The numbers that events carry, as enumerations whose members are ints: `packet.reason == PacketInReason.ACTION`."""

from enum import IntEnum

class PacketInReason(IntEnum):
    """Why a switch sent a packet-in (OpenFlow 1.3.5, 7.4.1)."""

    NO_MATCH = 0
    ACTION = 1
    INVALID_TTL = 2


class PortReason(IntEnum):
    """What happened to a port (OpenFlow 1.3.5, 7.4.3)."""

    ADDED = 0
    DELETED = 1
    MODIFIED = 2


class RemovedReason(IntEnum):
    """Why a rule was removed (OpenFlow 1.3.5, 7.4.2)."""

    IDLE_TIMEOUT = 0
    HARD_TIMEOUT = 1
    DELETE = 2
    GROUP_DELETE = 3


class Quota(IntEnum):
    """The quotas that have a soft limit; the unit is the last word."""

    COMMANDS_PER_S = 1
    PACKET_OUTS_PER_S = 2
    RULES_PER_DATAPATH = 3
    TABLE_ENTRIES = 4
    CPU_PERCENT = 5
    MEMORY_KIB = 6
    OPEN_FILES = 7
    THREADS = 8
    LAG_MS = 9
    STORE_BYTES = 10


class QueryStatus(IntEnum):
    """Why there is no answer to a query. The kernel or a service sends it."""

    NO_SUCH_SERVICE = 0xFFFF
    SERVICE_BUSY = 0xFFFE
    ANSWER_LOST = 0xFFFD
    NO_ANSWER_IN_TIME = 0xFFFC
    SERVICE_GONE = 0xFFFB
    TOO_MUCH = 0xFFFA
    CALLER_GONE = 0xFFF9
    CANCELLED = 0xFFF8
    BAD_ANSWER = 0xFFF7
    NOT_GRANTED = 0xFF80
    OVER_QUOTA = 0xFF81
    BAD_QUESTION = 0xFF82
    ANSWER_TOO_LONG = 0xFF83
