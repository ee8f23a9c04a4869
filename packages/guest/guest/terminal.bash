# What bash reads in a terminal of the computer: the user's own settings, and then how each command
# that a person enters is told to whoever reads the terminal: ESC ] 7770 ; BASE64 BEL, before it runs.
# What a program asks for (a password, an answer) is never a command of the shell, so it is not told.

[ -r ~/.bashrc ] && . ~/.bashrc

# Every line counts, also one that begins with a blank or is the same again.
HISTCONTROL= HISTIGNORE= HISTTIMEFORMAT=
shopt -s cmdhist lithist
set -o history

__tandem_told() {
  local line
  line=$(builtin history 1)
  line=${line#"${line%%[![:space:]]*}"}
  line=${line#*[[:space:]][[:space:]]}
  # A command of its own begins in the home folder; this one may not.
  [ "$PWD" -ef ~ ] || printf -v line 'cd %q && %s' "$PWD" "$line"
  printf '\e]7770;%s\a' "$(printf %s "$line" | head -c 8192 | base64 -w0)"
}
PS0='$(__tandem_told)'
