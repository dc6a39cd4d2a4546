"""$(NAME) references in commands, arguments and environment values.

Called by `environment` and `launch`. Pure.

Source: "Define dependent environment variables", "Define a command and arguments" (Kubernetes documentation).
"""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each $(NAME) replaced by its value; unknown names stay as they are, and `$$` is one `$`."""

    def replacement(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "$"
        return variables.get(name, found.group(0))

    return _REFERENCE.sub(replacement, text)
