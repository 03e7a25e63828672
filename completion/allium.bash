# SPDX-License-Identifier: BSD-2-Clause
#
# bash completion for allium. It does not need the package bash-completion; with that package, the command after
# `allium run -- ` completes like a command of its own. tests/checks/docs compares the offered words with --help and the
# manual.

_allium_commands='run trace events env attach detach ps snapshot report watch diff who frees sites tags export sql set sys doctor bench'

# COMMAND ('' is allium itself): prints its options. Add a new option here.
_allium_options()
{
    case $1 in
    '') echo -V --help --version ;;
    run) echo --period -o --output --force --sites --wrapper --no-follow --no-args --quiet --html --json --ledger-size --debuginfod --help ;;
    events) echo --where --by --top --sum --histogram --columns --wide --exact --json --no-pager --help ;;
    trace) echo -o --output --force --events --where --buffer --clock --stacks --limit --duration --flight --snapshot-on --kernel --kernel-all --kernel-buffer --function --period --no-follow --no-args --quiet --sum --interval --top --histogram --alert --exec --json -p --pid --help ;;
    env) echo --shell --systemd --docker --period --ledger-size --sites --wrapper --trace --flight --no-follow --help ;;
    ps) echo --prune --top --columns --wide --exact --json --help ;;
    attach) echo --period --ledger-size --timeout --quiet -p --pid --help ;;
    detach) echo --quiet -p --pid --help ;;
    snapshot) echo -o --output --force --trace --last --debuginfod -p --pid --help ;;
    report) echo --by --callers --callees --sort --temporary --older-than --where --raw --top --debuginfod --columns --wide --exact --json --html --force --no-pager -p --pid --help ;;
    watch) echo --interval --count --duration --once --older-than --where --top --state --alert --exec --debuginfod --columns --wide --exact --json -p --pid --help ;;
    diff) echo --by --sort --where --per --fail-if --coarse --raw --top --debuginfod --columns --wide --exact --json --html --html-size --force --no-pager --help ;;
    who) echo --size --top --debuginfod --columns --wide --exact --json --no-pager -p --pid --help ;;
    frees) echo --where --top --debuginfod --columns --wide --exact --json --no-pager -p --pid --help ;;
    sites) echo --freed --faults --by --sort --where --fail-if --top --interval --count --duration --columns --wide --exact --json --allocinfo --openmetrics --html --force --stacks --folded --no-pager -p --pid --help ;;
    tags) echo --by --sort --where --fail-if --top --interval --count --duration --faults --columns --wide --exact --json --allocinfo --openmetrics --html --force --stacks --folded --latency --no-pager -p --pid --help ;;
    export) echo --html --html-size --svg --metric --pprof --folded --speedscope --heaptrack --chrome --ctf -o --output --force --where --debuginfod -p --pid --help ;;
    sql) echo --json --csv --debuginfod --no-pager -p --pid --help ;;
    set) echo --where --for -p --pid --help ;;
    sys) echo --list -p --pid --interval --count --duration --sort --top --all --pss --columns --wide --exact --json --no-pager --help ;;
    'sys allocinfo') echo --by --sort --where --top --interval --count --duration --allocinfo --columns --wide --exact --json --no-pager --help ;;
    'sys frag') echo --from --interval --count --duration --buffer --top --html --force --columns --wide --exact --json --no-pager --help ;;
    'sys advise') echo --from --config --source --top --json --no-pager --help ;;
    'sys import') echo -o --output --force --boot --script --format --kallsyms --vmlinux --source --state --partial --quiet --help ;;
    'sys record') echo -o --output --force --events --stacks --pid -p --tid -t --comm --cgroup --where --buffer --raw --interval --settle --duration --vmlinux --source --debuginfod --quiet --help ;;
    doctor) echo --boot --json --help ;;
    bench) echo --mechanism --sink --list --threads --time --payload --rate --explain --memcg --columns --wide --exact --json --help ;;
    'sys '*) _allium_help sys "${1#sys }" | sed -n '/^options:/,/^$/s/^  \(\(-.\), \)\{0,1\}\(--[a-z-]*\).*/\2 \3/p' ;;
    esac
}

# COMMAND...: prints its --help, which lists the options and columns of a tool of `allium sys`.
_allium_help()
{
    "${COMP_WORDS[0]}" "$@" --help 2>/dev/null
}

# COMMAND... HEADING: prints the words of its --help below the line that begins with HEADING, without text in brackets.
_allium_listed()
{
    _allium_help "${@:1:$#-1}" | sed -n "/^${*: -1}/,/^\$/{/^  /{s/\[[^]]*\]//g;p;};}"
}

# TOOL OPTION: offers values of that option of `allium sys TOOL`. Fails if the option takes no value.
_allium_tool_value()
{
    case $2 in
    --sort | --columns | --where | --alert | --only) _allium_words "$(_allium_listed sys "$1" columns,)" ;;
    --attach) _allium_words "$(_allium_listed sys "$1" 'ways to attach')" ;;
    --by) _allium_words "$(_allium_help sys "$1" | sed -n '/^  --by/{s/.*rows by//;s/and of recordings by//;s/,//g;s/ or / /;p;}')" ;;
    --stacks) _allium_words user kernel both none ;;
    -o | --output | --from) _allium_files ;;
    --html | --vmlinux | --kallsyms | --source) _allium_offer -f ;;
    --state) _allium_offer -d ;;
    --debuginfod) _allium_words off wait 10s ;;
    -p | --pid) _allium_words "$(_allium_pids)" ;;
    -u | --uid | --user) _allium_offer -u ;;
    --cgroup) _allium_offer -d ;;
    -h | --help | --json | --hist | --folded | --quiet | --growth | --live | --lines | --wide | --exact | --partial) return 1 ;;
    esac
}

# COMMAND OPTION: offers values of the option. Fails if the option takes no value.
_allium_value()
{
    case $1 in
    'sys advise' | 'sys allocinfo' | 'sys frag' | 'sys import' | 'sys record') ;;
    'sys '*)
        _allium_tool_value "${1#sys }" "$2"
        return
        ;;
    esac
    case "$1 $2" in
    'sys advise --from')
        _allium_files '!*.allium'
        return
        ;;
    'sys advise --config')
        _allium_files
        return
        ;;
    'sys advise --source')
        _allium_offer -d
        return
        ;;
    'events --by')
        _allium_words event thread cpu call
        return
        ;;
    'trace --kernel')
        _allium_words kmem pages faults maps rss sched reclaim oom
        return
        ;;
    'sys record --stacks')
        _allium_words kernel none
        return
        ;;
    'sys import --format')
        _allium_words text perf.data trace.dat raw allocinfo slab_traces page_owner
        return
        ;;
    'trace --function')
        _allium_words usdt:
        return
        ;;
    'trace --events')
        _allium_words alloc begin tag user
        return
        ;;
    'trace --stacks')
        _allium_words none site full
        return
        ;;
    'sys record --events')
        _allium_words slab page extfrag percpu
        return
        ;;
    'sys record --pid' | 'sys record -p')
        _allium_words "$(_allium_pids)"
        return
        ;;
    'sys record --cgroup')
        _allium_offer -d
        return
        ;;
    'sys record --source' | 'sys import --source')
        _allium_offer -f
        return
        ;;
    'sys record --raw' | 'sys import --state')
        _allium_offer -d
        return
        ;;
    'sys allocinfo --by')
        _allium_words site file directory module function
        return
        ;;
    'sys allocinfo --sort')
        _allium_words size calls average name change calls_change size_per_s calls_per_s sites
        return
        ;;
    esac
    case $2 in
    -o | --output | --from) _allium_files ;;
    --html) _allium_offer -f ;;
    --by)
        if [ "$1" = tags ] || [ "$1" = sites ]; then
            _allium_words site function file directory module class process
            return
        fi
        _allium_words stack function file directory module owner thread size process
        ;;
    --sort)
        if [ "$1" = sys ]; then
            _allium_words memory rss swap anon file shmem faults
            return
        fi
        if [ "$1" = sites ]; then
            _allium_words total slack live objects allocations frees failed freed
            return
        fi
        if [ "$1" = tags ]; then
            _allium_words live objects peak allocated allocations failed
            return
        fi
        _allium_words live peak allocated allocations temporary
        [ "$1" = diff ] || _allium_words age requested slack
        ;;
    -p | --pid) _allium_words "$(_allium_pids)" ;;
    --debuginfod) _allium_words off wait 10s ;;
    --fail-if)
        if [ "$1" = diff ]; then
            _allium_words live+10% peak+10% allocated+10% allocations+10% temporary+10%
        else
            _allium_words live+10% objects+10% allocated+10% allocations+10% failed+0
        fi
        ;;
    --kallsyms) _allium_offer -f ;;
    --per) _allium_words boot event s ;;
    --svg) _allium_words flame treemap timeline ;;
    --mechanism | --sink)
        _allium_words all "$("${COMP_WORDS[0]}" bench --list 2>/dev/null | sed -n "/^${2#--} /I,/^\$/s/^\([a-z0-9-]*\) .*/\1/p")"
        ;;
    --metric) _allium_words live peak allocated allocations temporary requested slack ;;
    --folded)
        [ "$1" = export ] || return 1
        _allium_words live peak allocated allocations temporary requested slack
        ;;
    --state) _allium_files ;;
    --clock) _allium_words tsc mono counter every:8 none ;;
    --sum) _allium_words malloc.size,by=site alloc.size,by=thread free,by=site kernel:mmap.length,by=thread kernel:page_fault_begin,by=class ;;
    --snapshot-on) _allium_words signal every:10m 'exit!=0' 'live>1G' growing event:malloc ;;
    --alert) _allium_words growing 'live>' ;;
    --period | --ledger-size | --limit | --last | --older-than | --callers | --callees | --where | --top | --size | --exec | --interval | --duration | --count | --faults | --for | --wrapper | --buffer | --html-size | --threads | --time | --payload | --rate | --explain | --timeout) ;;
    *) return 1 ;;
    esac
}

# COMMAND: offers its arguments that are no options.
_allium_argument()
{
    case $1 in
    sys) _allium_words "$(_allium_help sys | sed -n '/^\(tools\|without BPF\),/,/^$/s/^  \([a-z]*\) .*/\1/p')" ;;
    attach) _allium_words "$(ps -o pid= -U "$EUID" 2>/dev/null)" ;;
    detach | snapshot | trace) _allium_words "$(_allium_pids)" ;;
    tags)
        _allium_files
        _allium_words "$(_allium_pids)"
        ;;
    'sys allocinfo') _allium_files ;;
    set) _allium_words "$(_allium_pids)" period= on off free-stacks=all free-stacks=some trace=on trace=off trace= stacks latency fail= stacks=off latency=off fail=off ;;
    report | watch | diff | who | frees | sites | export | sql)
        _allium_files '!*.allium'
        _allium_words "$(_allium_pids)"
        ;;
    esac
}

# OPTION...: offers the words that compgen finds with these options.
_allium_offer()
{
    local IFS=$' \t\n' found
    mapfile -t found < <(compgen "$@" -- "$cur" | sort -u)
    COMPREPLY+=("${found[@]}")
}

# Offers the WORDS that begin like the word at the cursor.
_allium_words()
{
    _allium_offer -W "$*"
}

# Offers files, except those that match PATTERN, and directories.
_allium_files()
{
    compopt -o filenames 2>/dev/null
    if [ $# = 0 ]; then
        _allium_offer -f
    else
        _allium_offer -f -X "$1"
        _allium_offer -d
    fi
}

# Offers the user's own processes.
_allium_pids()
{
    local process
    for process in /proc/[0-9]*; do
        [ ! -O "$process" ] || echo "${process#/proc/}"
    done
}

# The word at INDEX is where another command begins.
_allium_foreign()
{
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [ "$COMP_CWORD" = "$1" ]; then
        _allium_offer -c
    else
        _allium_files
    fi
}

_allium()
{
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} index
    COMPREPLY=()
    if [ "$command" = sys ] && ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[2]} != -* ]]; then
        command="sys ${COMP_WORDS[2]}"
    fi
    for ((index = 2; index < COMP_CWORD; index++)); do
        if [ "${COMP_WORDS[index]}" = -- ]; then
            case $command in
            run | 'sys '*) _allium_foreign $((index + 1)) ;;
            *) _allium_argument "$command" ;;
            esac
            return
        fi
    done
    # --by=stack comes as three words
    [ "$cur" != = ] || cur=
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}

    if [ "$COMP_CWORD" = 1 ]; then
        case $cur in
        -*) _allium_words "$(_allium_options '')" ;;
        *) _allium_words "$_allium_commands" ;;
        esac
    elif [[ $before == -* ]] && _allium_value "$command" "$before"; then
        :
    elif [[ $cur == -* ]]; then
        _allium_words "$(_allium_options "$command")"
    else
        _allium_argument "$command"
    fi
}

complete -F _allium allium
