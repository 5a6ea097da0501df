"""Which environment variables describe a terminal, a shell or a login session, and nothing else.

An engine serves all terminals of its user, so it cannot have the variables of one of them. These are not passed on: the
results of an operation do not depend on the terminal in which the engine was started. Every other variable counts,
known or not, because any provider may read it: a wrong guess here would be a wrong result, and a variable that counts
without need costs only one more engine. So nothing is matched by a general pattern (`*_SESSION*` has the credential
`AWS_SESSION_TOKEN`), and variables that reach an agent, a bus, a display or a helper of credentials count
(`SSH_AUTH_SOCK`, `DBUS_SESSION_BUS_ADDRESS`, `DISPLAY`, `GIT_ASKPASS` and the `VSCODE_*` that it needs).
"""

from __future__ import annotations

from typing import Final

_SHELL: Final = {"_", "OLDPWD", "PWD", "SHLVL", "PROMPT_COMMAND", "PS1", "PS2", "PS3", "PS4", "HISTFILE"}
_PROMPTS: Final = {"CONDA_PROMPT_MODIFIER", "CONDA_SHLVL", "VIRTUAL_ENV_PROMPT", "STARSHIP_SESSION_KEY"}
_TERMINAL: Final = {
    "COLORFGBG",
    "COLORTERM",
    "COLUMNS",
    "GPG_TTY",  # a pass phrase could only be asked for at the terminal of another command
    "INSIDE_EMACS",
    "LINES",
    "TERM",
    "TERMCAP",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "VTE_VERSION",
    "WINDOWID",
    "WT_PROFILE_ID",
    "WT_SESSION",
    "ALACRITTY_*",
    "GHOSTTY_*",
    "GNOME_TERMINAL_*",
    "ITERM_*",
    "KITTY_*",
    "KONSOLE_*",
    "TERMINATOR_*",
    "TILIX_*",
    "WEZTERM_*",
}
_MULTIPLEXERS: Final = {"STY", "WINDOW", "TMUX", "TMUX_PANE", "ZELLIJ", "ZELLIJ_PANE_ID", "ZELLIJ_SESSION_NAME"}
_LOGIN: Final = {
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "XDG_SEAT",
    "XDG_SEAT_PATH",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_ID",
    "XDG_SESSION_PATH",
    "XDG_SESSION_TYPE",
    "XDG_VTNR",
}
_STARTED_BY: Final = {"INVOCATION_ID", "JOURNAL_STREAM", "MANAGERPID", "SYSTEMD_EXEC_PID", "PYTEST_CURRENT_TEST"}

SESSION_VARIABLES: Final = frozenset(_SHELL | _PROMPTS | _TERMINAL | _MULTIPLEXERS | _LOGIN | _STARTED_BY)
"""Names of variables; one that ends with `*` stands for all names with this beginning."""


def is_listed(name: str, names: frozenset[str]) -> bool:
    """Return whether a variable is one of these names."""
    return name in names or any(name.startswith(each[:-1]) for each in names if each.endswith("*"))
