"""Provides files that exist in memory alone, for libraries that read certificates and keys from a path.

OpenSSL and libpq read such a file by its path in /proc: nothing is on a disk, and no writable folder is needed, which
containers with a read-only root file system lack. Linux only. The TLS contexts of `podscaler.kube` and the PostgreSQL
source of `podscaler.sources` are made with such files.

    with MemoryFile(pem) as path:
        context.load_cert_chain(path)

Source: memfd_create(2), proc_pid_fd(5).
"""

import os


class MemoryFile:
    """A file with these contents, until `close` or the end of the `with` block. Raises OSError."""

    def __init__(self, contents: bytes) -> None:
        self._file = os.fdopen(os.memfd_create("podscaler"), "wb")
        self._file.write(contents)
        self._file.flush()

    @property
    def path(self) -> str:
        """The path of the file, in this process alone."""
        return f"/proc/self/fd/{self._file.fileno()}"

    def close(self) -> None:
        """Free the memory; calling it again does nothing."""
        self._file.close()

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()
