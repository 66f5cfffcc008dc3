package commandline

// Scripts are the completion scripts, by the name of the shell. They ask the program for completions: `ctl __complete
// WORD... LAST`, where LAST is the word being typed, perhaps empty.
var Scripts = map[string]string{
	"bash": `_minik8sd_complete() {
    [ "${COMP_WORDS[1]}" = ctl ] || { [ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W ctl -- "${COMP_WORDS[1]}")); return; }
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" ctl __complete -- "${COMP_WORDS[@]:2:COMP_CWORD-1}" 2>/dev/null))
}
complete -o default -F _minik8sd_complete minik8sd
`,
	"zsh": `#compdef minik8sd
_minik8sd() {
    if (( CURRENT == 2 )); then compadd ctl; return; fi
    [[ ${words[2]} == ctl ]] || return
    local -a found
    found=(${(f)"$(${words[1]} ctl __complete -- "${(@)words[3,CURRENT]}" 2>/dev/null)"})
    (( ${#found} )) && compadd -a found || _files
}
compdef _minik8sd minik8sd
`,
	"fish": `function __minik8sd_complete
    set -l words (commandline -opc) (commandline -ct)
    test "$words[2]" = ctl; and $words[1] ctl __complete -- $words[3..-1] 2>/dev/null
end
complete -c minik8sd -n 'test (count (commandline -opc)) -eq 1' -a ctl
complete -c minik8sd -n 'test (count (commandline -opc)) -gt 1' -a '(__minik8sd_complete)'
`,
}
