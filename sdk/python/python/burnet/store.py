"""The statuses of answers of the node's store, as `QueryReply.status` says them."""

from typing import Final

DONE: Final = 0
"""It is done, and on disk; of a get, the payload is the value; of a list, these are keys and there are no more."""
NOT_FOUND: Final = 1
"""There is no such key."""
APP_FULL: Final = 0xFF81
"""The app would have more in the store than its quota `store_bytes`. Nothing is changed."""
NOT_GRANTED: Final = 0xFF80
"""The app was not granted this key. The payload is a sentence."""
BAD_QUESTION: Final = 0xFF82
"""The key or the value is too long, or the key is empty. The payload is a sentence."""
STORE_FULL: Final = 3
"""All apps together would have more in the store than it takes. Nothing is changed."""
FAILED: Final = 4
"""The file cannot be read or written; the payload says why. Nothing is changed."""
MORE_KEYS: Final = 5
"""Of a list: these are keys, and there are more of them behind the last."""
MAYBE_DONE: Final = 6
"""Of a change: the file failed while it was written to disk, so the change may be there. Read the key to know it."""
NO_ANSWER_IN_TIME: Final = 0xFFFC
"""The store has said nothing for ten seconds; ask again later."""
ANSWER_LOST: Final = 0xFFFD
"""A part of the answer was lost, since the app did not keep up; ask again."""
BUSY: Final = 0xFFFE
"""The store has more to do than it can take on; ask again later."""
AWAY: Final = 0xFFFF
"""The service that keeps the store is not there now; ask again later."""
