"""The memory sum of a launch: what each GPU holds, what is left, and which way to move what."""
