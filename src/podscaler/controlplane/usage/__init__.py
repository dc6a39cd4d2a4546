"""What pods and node use: readings of processes, usage of simulated pods, and both as the metrics API's objects."""
