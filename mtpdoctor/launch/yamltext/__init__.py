"""YAML as text with exact places: nodes, the text inside scalars, and edits of their own lines only."""
