"""Launching a server and watching it until it generates tokens, or its end is explained."""
