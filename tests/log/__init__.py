"""Reading logs; ``log.wrap`` carries a log in any transport, for other tests too."""
