"""The schema of the API types as strategic merge patch sees it.

Called by `patching`; `patch.strategic` defines what it needs, `schema.merge_keys` has the facts.
"""

from dataclasses import dataclass

from podscaler.api.schema import merge_keys


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """One message of the API.

    Args:
        message: the schema's name (`core/v1.PodSpec`); empty for data without a schema.
        is_map: the value is a map whose values are of the message.
    """

    message: str
    is_map: bool = False

    @property
    def name(self) -> str:
        """The message as Go names its type: `v1.PodSpec`."""
        return self.message.rpartition("/")[2]

    def merges_list(self, key: str) -> bool:
        """Whether the list `key` is merged."""
        found = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return found is not None and found.merge

    def merges_object(self, key: str) -> bool:
        """Whether the object or map `key` is merged."""
        found = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return found is None or not found.replace

    def merge_key(self, key: str) -> str:
        """The member that identifies an element of the list `key`."""
        found = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return found.key if found else ""

    def member(self, key: str) -> "MessageSchema":
        """The type of the value of `key`, or of its elements."""
        if self.is_map:
            return MessageSchema(self.message)
        return MessageSchema(merge_keys.element_message(self.message, key), merge_keys.is_map(self.message, key))
