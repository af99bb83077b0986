"""What differs between two launches, and which of it is likeliest to be the reason."""
