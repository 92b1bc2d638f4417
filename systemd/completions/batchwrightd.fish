# fish completion of batchwrightd
complete -c batchwrightd -f
complete -c batchwrightd -l config -r -F -d 'The configuration, a TOML file'
complete -c batchwrightd -l folder -x -a '(__fish_complete_directories)' -d 'Folder of the sockets of clients and pages'
complete -c batchwrightd -l private-page -d 'Pages at a free port of the loopback, below a path that cannot be guessed'
complete -c batchwrightd -l log-level -x -a 'debug info warn error' -d 'Unless the configuration has log_level'
complete -c batchwrightd -l check-config -d 'Check the configuration and what it names, and serve nothing'
complete -c batchwrightd -l for-run -d 'Check it as batchwright run will use it'
complete -c batchwrightd -l reload -x -a '(pgrep -x batchwrightd)' -d 'Have a running daemon read its configuration again'
complete -c batchwrightd -s h -l help -d 'Print the help and exit'
complete -c batchwrightd -l version -d 'Print the version and exit'
