"""Many launches, one picture: which logs are one problem, which are new, and what each one needs."""
