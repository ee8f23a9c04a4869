PS1="\[\e[36m\]\w\[\e[0m\] \$ "
alias ls="ls --color=auto"
