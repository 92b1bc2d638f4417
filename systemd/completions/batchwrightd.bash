# bash completion of batchwrightd
_batchwrightd() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  case $before in
    --config) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --folder) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --log-level) mapfile -t COMPREPLY < <(compgen -W 'debug info warn error' -- "$word") ;;
    --reload) mapfile -t COMPREPLY < <(compgen -W "$(pgrep -x batchwrightd)" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W '--config --folder --private-page --log-level --check-config --for-run --reload --help --version' -- "$word") ;;
  esac
}
complete -o filenames -F _batchwrightd batchwrightd
