"""YAML as text with exact places: nodes, the text inside scalars, and edits that touch only their own lines."""
