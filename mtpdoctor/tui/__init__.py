"""The interactive doctor: screens over the same core as the command line. Only this part imports Textual."""
