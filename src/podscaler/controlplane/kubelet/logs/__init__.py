"""Container logs and streams: output is written to rotated files, read for `kubectl logs`, copied for `kubectl attach`.

Entry points: `container_log.ContainerLogManager`, `log_reader.NodeLogs`, `container_streams.ContainerStreams`.
Reading order: `log_format`; `rotated_files`; `container_log`; `log_reader`; `container_streams`.
May import: `controlplane.kubelet.launching` and below.
"""
