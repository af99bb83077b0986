"""Reading logs: transports, lines, ranks, attempts, stages, events."""
