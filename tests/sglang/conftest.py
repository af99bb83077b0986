from hypothesis import settings

# The first look at a table reads files; how long that takes on a busy machine is no property of the code.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
