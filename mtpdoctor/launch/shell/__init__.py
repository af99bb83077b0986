"""Shell text: words with their exact places, simple commands, variables that the text itself resolves."""
