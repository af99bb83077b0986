"""What a shell writes in front of a command: its prompt, and the mark of its trace (``set -x``)."""

from __future__ import annotations

# "$ ", "root@node1:~# ", "[me@node1 dir]$ ", "(venv) me@node:~$ ", "me@mac dir % ", "node1:~/dir$ ", "~/dir $ "
PROMPT = (
    r"(?:\([\w.-]{1,40}\) ?)*"
    r"(?:\[[\w.-]+@[\w.-]+[ :][^\]\n]{1,80}\] ?[$#%]|[\w.-]+@[\w.-]+(?:[: ][^$#%>\n]{0,200}?)?[$#%>]"
    r"|[\w.-]{1,60}:[~/][^$#\s]{0,200} ?[$#]|[~/][\w./~-]{0,200} ?[$#%]|[$%❯➜])"
)
TRACE = r"\+{1,4}"
